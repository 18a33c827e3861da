"""Look at everything in a gallery and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, StoreError
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.filters import Filter
from resight.gallery.gallery import Gallery
from resight.gallery.log import log_rows, verify
from resight.gallery.manifest import ERASING, Manifest, load_model
from resight.gallery.view import features_of, read_journal
from resight.images import read

_BATCH = 256
_QUERIES = 50
_DEPTH = 10


@dataclass
class Report:
    """What a check found: damage, and harmless leftovers, which the next changes clean up."""

    sightings: int = 0
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    recall: float | None = None  # of the true 10 nearest by the approximate index, if there is one

    @property
    def clean(self) -> bool:
        """Whether nothing is damaged."""
        return not self.problems


def check(uri: str) -> Report:
    """Read a gallery as a whole: tables, images, descriptors, embeddings, labels, index."""
    report, engine = Report(), connect(uri)
    report.problems += engine.verify()
    try:
        manifest = Manifest.read(engine)
        model = load_model(engine, manifest.current.number)
        ids: list[str] = engine.table().ids.tolist()
        report.sightings = len(ids)
        for look in (_of_the_whole, _of_rows, _of_embeddings):
            report.problems += look(engine, manifest, model, ids)
        report.notes += _leftovers(engine, manifest, {*ids})
        if manifest.current.indexed and not report.problems:
            report.recall = measure_recall(Gallery.open(uri))
    except StoreError as error:
        if not report.problems:
            report.problems.append(str(error))
    finally:
        engine.close()
    return report


def _of_the_whole(engine: Engine, manifest: Manifest, model: Any, ids: list[str]) -> Iterator[str]:
    if model.descriptor_fingerprint != manifest.descriptor:
        yield (
            f"descriptors were made by {manifest.descriptor}, this version of resight makes "
            f"{model.descriptor_fingerprint}"
        )
    if model.fingerprint != manifest.current.fingerprint:
        yield f"the model is {model.fingerprint}, the manifest names {manifest.current.fingerprint}"
    if engine.names(ERASING):
        yield (
            "erasing was begun and not finished, so what is to go is still there; finish it: "
            f"resight gallery forget {engine.uri} --resume"
        )
    yield from (f"log: {text}" for text in verify(log_rows(engine)).problems)


def _of_rows(engine: Engine, manifest: Manifest, model: Any, ids: list[str]) -> Iterator[str]:
    stored = manifest.stored != "none"
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        images = engine.fetch(some, "image")
        features = features_of(engine, manifest, None, some) if stored else {}
        for sighting in some:
            try:
                read(images[sighting], f"sighting {sighting}: its image")
            except InputError as error:
                yield str(error)
            except KeyError:
                yield f"sighting {sighting}: its image is gone"
            values = features.get(sighting, np.empty(0))
            if stored and (len(values) != manifest.width or not np.isfinite(values).all()):
                yield f"sighting {sighting}: its descriptor is damaged"


def _of_embeddings(engine: Engine, manifest: Manifest, model: Any, ids: list[str]) -> Iterator[str]:
    """Embed some stored descriptors again: they must give the stored embeddings."""
    sample, generation = {*ids[:: max(1, len(ids) // _BATCH)]}, manifest.current
    kept: dict[str, NDArray[np.float32]] = {}
    for keys, vectors in engine.embeddings(generation.number, generation.width):
        kept |= {key: row for key, row in zip(keys.tolist(), vectors, strict=True) if key in sample}
    found = features_of(engine, manifest, model, list(kept))
    if not kept or any(len(found.get(key, ())) != manifest.width for key in kept):
        return  # said already
    again = np.asarray(model.embed(np.array([found[key] for key in kept])), np.float64)
    scale = max(float(np.abs(again).max()), 1e-12)
    apart = np.abs(again - np.array([*kept.values()])).max(axis=1)
    wrong = int((~(apart <= 1e-4 * scale)).sum())  # also what is not a number
    if wrong:
        yield (
            f"{wrong} of {len(kept)} embeddings looked at do not belong to their model; "
            "`resight gallery rebuild` makes them again"
        )


def _leftovers(engine: Engine, manifest: Manifest, known: set[str]) -> Iterator[str]:
    waiting = len(known - engine.embedded(manifest.current.number))
    if waiting:
        yield f"{waiting} sightings wait for an embedding; the next search makes it"
    unused = {*engine.generations()} - manifest.numbers
    if unused:
        yield (
            f"embeddings of {len(unused)} unfinished models; the next rebuild resumes with them "
            "or removes them"
        )
    gone = sum(not known.issuperset(entry.sightings) for entry in read_journal(engine))
    if gone:
        yield f"{gone} labels are about sightings that were removed; they have no effect"


def measure_recall(gallery: Gallery) -> float:
    """Ask the approximate index for stored sightings: how many of the 10 nearest it finds."""
    view, engine = gallery.view, gallery.engine
    number = view.manifest.current.number
    step = max(1, len(view.table) // _QUERIES)
    ids = view.table.ids[::step][:_QUERIES].tolist()
    queries = np.asarray(view.model.embed(gallery.features(ids).features), np.float32)
    hits = total = 0
    for query in queries:
        truth, _ = engine.nearest(number, query, _DEPTH, Filter(), exact=True)
        found, _ = engine.nearest(number, query, _DEPTH, Filter(), exact=False)
        hits += len(set(truth) & set(found))
        total += len(truth)
    return hits / total if total else 1.0
