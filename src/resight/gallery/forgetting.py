"""Erasing people and old sightings, with proof that they are gone."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from resight.errors import StoreError, unknown_name
from resight.gallery.engines.base import Engine
from resight.gallery.gallery import Gallery
from resight.gallery.manifest import Manifest, drop_model, trained_on
from resight.gallery.rebuilding import unfinished
from resight.gallery.view import read_journal
from resight.times import EPOCH

_NEEDLE = 48  # bytes of an image or descriptor that no other one has


@dataclass(frozen=True)
class Forgotten:
    """What was erased, and that nothing was left when everything was searched for it."""

    person: str
    sightings: int
    labels: int
    searches: int
    models_replaced: int
    checked: str


def forget(gallery: Gallery, person: str) -> Forgotten:
    """Erase a person: sightings with images and numbers, labels, log entries, taught models.

    Raises
    ------
    StoreError
        If after erasing anything of the person is still found.
    """
    view = gallery.view
    ids = view.table.ids[view.persons == person].tolist()
    if not ids or not person:
        raise unknown_name("person", person, {p for p in view.persons.tolist() if p})
    needles = _needles(gallery.engine, ids)
    replaced = _replace_models(gallery, set(ids))
    gallery.engine.remove(ids)
    labels = _strike_labels(gallery.engine, set(ids), person)
    searches = _strike_access(gallery.engine, set(ids), person)
    gallery.engine.purge()
    prove_gone(gallery, ids, needles)
    places = "every table and file of the gallery"
    return Forgotten(person, len(ids), labels, searches, replaced, places)


def expire(gallery: Gallery, now: float | None = None) -> int:
    """Remove sightings older than the gallery's retention; return how many.

    A sighting is as old as its time says; where times count from the start of a recording, as old
    as its stay in the gallery.
    """
    days = gallery.view.manifest.retention_days
    if days is None:
        return 0
    table = gallery.view.table
    moment = np.where(table.times > EPOCH, table.times, table.added)
    limit = (time.time() if now is None else now) - 86_400.0 * days
    ids = table.ids[moment < limit].tolist()
    if ids:
        needles = _needles(gallery.engine, ids)
        _replace_models(gallery, set(ids))
        gallery.engine.remove(ids)
        _strike_labels(gallery.engine, set(ids), "")
        _strike_access(gallery.engine, set(ids), "")
        gallery.engine.purge()
        prove_gone(gallery, ids, needles)
    return len(ids)


def prove_gone(gallery: Gallery, ids: Sequence[str], needles: Sequence[bytes]) -> None:
    """Search table, journals and the medium itself for what was erased."""
    engine, erased = gallery.engine, set(ids)
    left = erased & set(engine.table().ids.tolist())
    places = [f"{len(left)} sightings"] if left else []
    for generation in Manifest.read(engine).history:
        for found, _ in engine.embeddings(generation.number, generation.width):
            if erased & set(found.tolist()):
                places.append(f"embeddings of model {generation.number}")
    for journal in ("labels", "access"):
        texts = " ".join(text for _, text in engine.read(journal))
        places += [f"the journal {journal}"] if any(s in texts for s in erased) else []
    places += engine.traces(needles)
    if places:
        raise StoreError(
            f"gallery {gallery.uri}: after erasing, traces are left in {', '.join(places)}. "
            "Another "
            "process may hold it open: close it and run the same command again"
        )


def _needles(engine: Engine, ids: Sequence[str]) -> list[bytes]:
    """Take bytes from the middle of each image and descriptor: they identify them."""
    needles = []
    for sighting, content in engine.fetch(ids, "image").items():
        middle = len(content) // 2
        needles += [content[middle : middle + _NEEDLE], sighting.encode()]
    return needles


def _strike_labels(engine: Engine, ids: set[str], person: str) -> int:
    entries = read_journal(engine)
    struck = [e.key for e in entries if {e.a, e.b} & ids or (person and e.person.strip() == person)]
    undone = [e.key for e in entries if e.kind == "undo" and e.a in set(struck)]
    engine.strike("labels", struck + undone)
    return len(struck)


def _strike_access(engine: Engine, ids: set[str], person: str) -> int:
    keys = []
    for key, text in engine.read("access"):
        values = set(json.loads(text).values())
        if values & ids or (person and person in values):
            keys.append(key)
    engine.strike("access", keys)
    return len(keys)


def _replace_models(gallery: Gallery, ids: set[str]) -> int:
    """Drop models that were taught with these sightings: a kernel model contains them.

    The model that the gallery was created with was fitted elsewhere and stays.
    """
    engine = gallery.engine
    manifest = Manifest.read(engine)
    tainted = [g for g in manifest.history if set(trained_on(engine, g.number)) & ids]
    if tainted:
        clean = tuple(g for g in manifest.history if g not in tainted)
        replace(manifest, history=clean).store(engine)
        for generation in tainted:
            drop_model(engine, generation.number)
    for number in unfinished(engine):  # of a rebuild that was killed or still goes on
        if set(trained_on(engine, number)) & ids:
            drop_model(engine, number)
    return len(tainted)
