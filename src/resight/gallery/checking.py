"""Look at everything in a gallery and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import Engine, Table
from resight.gallery.filters import Filter
from resight.gallery.gallery import Gallery
from resight.gallery.log import verify
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
    from resight.gallery.engines import connect

    report = Report()
    engine = connect(uri)
    report.problems += engine.verify()
    try:
        manifest = Manifest.read(engine)
        model = load_model(engine, manifest.current.number)
        table = engine.table()
        report.sightings = len(table)
        report.problems += _model_problems(manifest, model)
        report.problems += list(_row_problems(engine, manifest, table))
        _check_embeddings(engine, manifest, model, table, report)
        _check_labels(engine, table, report)
        report.problems += list(_unfinished_erasing(engine))
        report.problems += [f"log: {text}" for text in verify(engine.log_rows()).problems]
        if manifest.current.indexed and not report.problems:
            report.recall = measure_recall(Gallery.open(uri))
    except StoreError as error:
        if not report.problems:
            report.problems.append(str(error))
    finally:
        engine.close()
    return report


def _model_problems(manifest: Manifest, model: Any) -> Iterator[str]:
    if model.descriptor_fingerprint != manifest.descriptor:
        yield (
            f"descriptors were made by {manifest.descriptor}, this version of resight makes "
            f"{model.descriptor_fingerprint}"
        )
    if model.fingerprint != manifest.current.fingerprint:
        yield f"the model is {model.fingerprint}, the manifest names {manifest.current.fingerprint}"


def _row_problems(engine: Engine, manifest: Manifest, table: Table) -> Iterator[str]:
    for start in range(0, len(table), _BATCH):
        ids = table.ids[start : start + _BATCH].tolist()
        images = engine.fetch(ids, "image")
        stored = manifest.stored != "none"
        features = features_of(engine, manifest, None, ids) if stored else {}
        for sighting in ids:
            try:
                read(images[sighting], f"sighting {sighting}: its image")
            except InputError as error:
                yield str(error)
            except KeyError:
                yield f"sighting {sighting}: its image is gone"
            values = features.get(sighting)
            if stored and (
                values is None or len(values) != manifest.width or not np.isfinite(values).all()
            ):
                yield f"sighting {sighting}: its descriptor is damaged"


def _unfinished_erasing(engine: Engine) -> Iterator[str]:
    if engine.names(ERASING):
        yield (
            "erasing was begun and not finished, so what is to go is still there; finish it: "
            f"resight gallery forget {engine.uri} --resume"
        )


def _check_embeddings(
    engine: Engine, manifest: Manifest, model: Any, table: Table, report: Report
) -> None:
    generation = manifest.current
    stored: dict[str, NDArray[np.float32]] = {}
    for ids, vectors in engine.embeddings(generation.number, generation.width):
        stored.update(zip(ids.tolist(), vectors, strict=True))
    known = table.ids.tolist()
    lacking = [sighting for sighting in known if sighting not in stored]
    if lacking:
        report.notes.append(
            f"{len(lacking)} sightings wait for an embedding; the next search makes it"
        )
    used = {g.number for g in manifest.history}
    unused = [number for number in engine.generations() if number not in used]
    if unused:
        report.notes.append(
            f"embeddings of {len(unused)} unfinished models; the next rebuild resumes with them "
            "or removes them"
        )
    sample = [sighting for sighting in known if sighting in stored][:: max(1, len(known) // _BATCH)]
    if sample:
        _compare(engine, manifest, model, sample, stored, report)


def _compare(
    engine: Engine,
    manifest: Manifest,
    model: Any,
    sample: list[str],
    stored: dict[str, NDArray[np.float32]],
    report: Report,
) -> None:
    """Embed some stored descriptors again: they must give the stored embeddings."""
    found = features_of(engine, manifest, model, sample)
    if any(len(found.get(sighting, ())) != manifest.width for sighting in sample):
        return  # said already
    again = np.asarray(model.embed(np.array([found[key] for key in sample])), np.float64)
    kept = np.array([stored[sighting] for sighting in sample], np.float64)
    scale = max(float(np.abs(again).max()), 1e-12)
    wrong = int((np.abs(again - kept).max(axis=1) > 1e-4 * scale).sum())
    if wrong:
        report.problems.append(
            f"{wrong} of {len(sample)} embeddings looked at do not belong to their model; "
            "`resight gallery rebuild` makes them again"
        )


def _check_labels(engine: Engine, table: Table, report: Report) -> None:
    known = set(table.ids.tolist())
    entries = [entry for entry in read_journal(engine) if entry.kind != "undo"]
    gone = sum(bool({entry.a, entry.b} - {""} - known) for entry in entries)
    if gone:
        report.notes.append(
            f"{gone} labels are about sightings that were removed; they have no effect"
        )
    if len(known) != len(table):
        report.problems.append(f"{len(table) - len(known)} sightings are stored twice")


def measure_recall(gallery: Gallery, where: Filter | None = None) -> float:
    """Compare the approximate index with the engine's exact scan: recall of the 10 nearest.

    Queries are stored sightings, spread evenly over the gallery.
    """
    view, engine = gallery.view, gallery.engine
    number = view.manifest.current.number
    step = max(1, len(view.table) // _QUERIES)
    ids = view.table.ids[::step][:_QUERIES].tolist()
    queries = np.asarray(view.model.embed(gallery.features(ids).features), np.float32)
    hits = total = 0
    for query in queries:
        truth, _ = engine.nearest(number, query, _DEPTH, where or Filter(), exact=True)
        found, _ = engine.nearest(number, query, _DEPTH, where or Filter(), exact=False)
        hits += len(set(truth) & set(found))
        total += len(truth)
    return hits / total if total else 1.0
