"""Look at everything in a gallery and say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import Engine
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
        looked_at = _Check(engine, report)
        looked_at.everything()
        if looked_at.manifest.current.indexed and not report.problems:
            report.recall = measure_recall(Gallery.open(uri))
    except StoreError as error:
        if not report.problems:
            report.problems.append(str(error))
    finally:
        engine.close()
    return report


class _Check:
    def __init__(self, engine: Engine, report: Report) -> None:
        self.engine, self.report = engine, report
        self.manifest = Manifest.read(engine)
        self.model = load_model(engine, self.manifest.current.number)
        self.table = engine.table()
        self.ids: list[str] = self.table.ids.tolist()
        report.sightings = len(self.table)

    def everything(self) -> None:
        problems = self.report.problems
        problems += list(self._of_model())
        problems += list(self._of_rows())
        self._embeddings()
        self._labels()
        if self.engine.names(ERASING):
            problems.append(
                "erasing was begun and not finished, so what is to go is still there; finish it: "
                f"resight gallery forget {self.engine.uri} --resume"
            )
        problems += [f"log: {text}" for text in verify(self.engine.log_rows()).problems]

    def _of_model(self) -> Iterator[str]:
        model, manifest = self.model, self.manifest
        if model.descriptor_fingerprint != manifest.descriptor:
            yield (
                f"descriptors were made by {manifest.descriptor}, this version of resight makes "
                f"{model.descriptor_fingerprint}"
            )
        if model.fingerprint != manifest.current.fingerprint:
            named = manifest.current.fingerprint
            yield f"the model is {model.fingerprint}, the manifest names {named}"

    def _of_rows(self) -> Iterator[str]:
        stored, width = self.manifest.stored != "none", self.manifest.width
        for start in range(0, len(self.ids), _BATCH):
            ids = self.ids[start : start + _BATCH]
            images = self.engine.fetch(ids, "image")
            features = features_of(self.engine, self.manifest, None, ids) if stored else {}
            for sighting in ids:
                try:
                    read(images[sighting], f"sighting {sighting}: its image")
                except InputError as error:
                    yield str(error)
                except KeyError:
                    yield f"sighting {sighting}: its image is gone"
                values = features.get(sighting, np.empty(0))
                if stored and (len(values) != width or not np.isfinite(values).all()):
                    yield f"sighting {sighting}: its descriptor is damaged"

    def _embeddings(self) -> None:
        generation = self.manifest.current
        stored: dict[str, NDArray[np.float32]] = {}
        for ids, vectors in self.engine.embeddings(generation.number, generation.width):
            stored.update(zip(ids.tolist(), vectors, strict=True))
        embedded = [sighting for sighting in self.ids if sighting in stored]
        if len(embedded) < len(self.ids):
            self.report.notes.append(
                f"{len(self.ids) - len(embedded)} sightings wait for an embedding; the next search "
                "makes it"
            )
        unused = set(self.engine.generations()) - self.manifest.numbers
        if unused:
            self.report.notes.append(
                f"embeddings of {len(unused)} unfinished models; the next rebuild resumes with "
                "them or removes them"
            )
        sample = embedded[:: max(1, len(self.ids) // _BATCH)]
        if sample:
            self._compare(sample, np.array([stored[key] for key in sample], np.float64))

    def _compare(self, sample: list[str], kept: NDArray[np.float64]) -> None:
        """Embed some stored descriptors again: they must give the stored embeddings."""
        found = features_of(self.engine, self.manifest, self.model, sample)
        if any(len(found.get(sighting, ())) != self.manifest.width for sighting in sample):
            return  # said already
        again = np.asarray(self.model.embed(np.array([found[key] for key in sample])), np.float64)
        scale = max(float(np.abs(again).max()), 1e-12)
        wrong = int((np.abs(again - kept).max(axis=1) > 1e-4 * scale).sum())
        if wrong:
            self.report.problems.append(
                f"{wrong} of {len(sample)} embeddings looked at do not belong to their model; "
                "`resight gallery rebuild` makes them again"
            )

    def _labels(self) -> None:
        known = set(self.ids)
        gone = sum(bool({*entry.sightings} - known) for entry in read_journal(self.engine))
        if gone:
            self.report.notes.append(
                f"{gone} labels are about sightings that were removed; they have no effect"
            )
        if len(known) != len(self.ids):
            twice = len(self.ids) - len(known)
            self.report.problems.append(f"{twice} sightings are stored twice")


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
