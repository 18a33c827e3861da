"""Sightings streamed into a gallery: read here, described by workers, stored here batch by batch.

One process reads, embeds and stores, so images need not lie where workers see them, a worker that
dies takes nothing with it, and embeddings always belong to the model in use when they are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.features.describing import Crop, Extraction, Failure, Task, describe_by
from resight.features.store import FeatureStore
from resight.gallery.adding import Added, Batch, Described, read_batch
from resight.gallery.engines.base import Engine, Floats32, Rows
from resight.gallery.manifest import Manifest, load_model
from resight.gallery.view import View
from resight.workers.executors import Executor, Outcome

_TRIES = 3  # how often the model may be replaced between embedding a batch and storing it


class _Begun(NamedTuple):
    """A batch that was read, its vectors as far as they are known, and the places still missing."""

    batch: Batch
    features: Floats32
    missing: NDArray[np.intp]


class Stream:
    """One run of `Gallery.add`, from the `view` of the gallery at its start.

    `given` holds vectors that were computed before: one for each sighting, or some of them. If
    `imageless`, sightings without a file are stored by their vector alone.
    """

    def __init__(
        self,
        engine: Engine,
        view: View,
        sightings: Sightings,
        given: Described | FeatureStore | None,
        imageless: bool = False,
    ) -> None:
        self.result = Added()
        self._engine = engine
        self._model, self._generation = view.model, view.manifest.current.number
        self._width = view.manifest.width
        self._descriptor = view.model.descriptor
        self._kind = view.model.descriptor_fingerprint
        self._vectors = given.features if imageless and isinstance(given, Described) else None
        self._sightings = sightings
        self._given = given
        self._lookup: Callable[[Sequence[str]], Floats32] | None = None
        if isinstance(given, FeatureStore):
            self._lookup = given.lookup(self._descriptor)
        self._known = set(view.rows)
        self._begun: dict[range, _Begun] = {}  # read, perhaps described, not stored yet

    def run(
        self,
        executor: Executor,
        batch_size: int,
        on_batch: Callable[[list[str]], None] | None = None,
    ) -> Added:
        """Add everything that is new; each batch is stored as a whole once it is described."""
        n = len(self._sightings)
        batches = [range(i, min(i + batch_size, n)) for i in range(0, n, batch_size)]
        for outcome in describe_by(executor, self._descriptor, batches, self._prepare):
            ids = self._take(outcome)
            if ids and on_batch is not None:
                on_batch(ids)
        return self.result

    def _prepare(self, rows: range) -> Task | None:
        """Read a batch just before it is described; None if there is nothing to describe."""
        if rows not in self._begun:
            found = read_batch(
                self._sightings, np.asarray(rows, np.intp), self._known, self.result, self._vectors
            )
            if found is None:
                return None
            self._known.update(found.table.ids.tolist())
            features = self._features(found)
            missing = np.flatnonzero(np.isnan(features).any(axis=1))
            self._begun[rows] = _Begun(found, features, missing)
        batch, _, missing = self._begun[rows]
        if len(missing) == 0:
            return None
        contents = {str(batch.table.ids[place]): batch.images[place] for place in missing}
        crops = [Crop(name, name, digest_of(image), None) for name, image in contents.items()]
        return Task(crops, contents, None)

    def _features(self, batch: Batch) -> Floats32:
        """Vectors that were computed before; NaN for the others."""
        if isinstance(self._given, Described):
            return np.array(self._given.features[batch.rows], np.float32)
        if self._lookup is not None:
            return self._lookup(batch.keys)
        return np.full((len(batch.rows), self._width), np.nan, np.float32)

    def _take(self, outcome: Outcome[range, Extraction]) -> list[str]:
        """Store what a worker described; return the ids that are there for good now."""
        begun = self._begun.pop(outcome.item, None)
        if begun is None:
            return []
        batch, features, missing = begun
        reasons: dict[int, str] = {}
        if outcome.error is not None:
            text = f"batch of {len(missing)} {outcome.reason}"
            reasons = dict.fromkeys(missing.tolist(), text)
        elif outcome.value is not None:
            features[missing[outcome.value.kept]] = outcome.value.features
            self.result.described += len(outcome.value.kept)
            reasons = {int(missing[row]): reason for row, _, reason in outcome.value.failures}
        self._fail(batch, reasons)
        good = [place for place in range(len(batch.rows)) if place not in reasons]
        if not good:
            return []
        kept = batch.select(good)
        self._store(kept, features[good])
        ids: list[str] = kept.table.ids.tolist()
        self.result.added += ids
        return ids

    def _fail(self, batch: Batch, reasons: dict[int, str]) -> None:
        for place, reason in reasons.items():
            row = int(batch.rows[place])
            self.result.failures.append(Failure(row, str(self._sightings.paths[row]), reason))
            self._known.discard(str(batch.table.ids[place]))

    def _store(self, batch: Batch, features: Floats32) -> None:
        """Embed a batch with the model in use now and store it."""
        for attempt in range(_TRIES):
            manifest = Manifest.read(self._engine)
            generation = manifest.current.number
            if manifest.descriptor != self._kind:
                raise StoreError(
                    f"gallery {self._engine.uri}: its model was replaced by one with other "
                    "descriptors. What was added before is safe; run the same command again"
                )
            if generation != self._generation:  # another process replaced the model
                self._model, self._generation = load_model(self._engine, generation), generation
            kept = None if manifest.stored == "none" else _as_stored(features, manifest.stored)
            stored = features if kept is None else kept.astype(np.float32)
            embeddings = np.asarray(self._model.embed(stored), np.float32)
            try:
                self._engine.add(Rows(batch.table, batch.images, kept, embeddings), generation)
                return
            except StoreError:
                replaced = Manifest.read(self._engine).current.number != generation
                if not replaced or attempt == _TRIES - 1:
                    raise


def _as_stored(features: Floats32, kind: str) -> NDArray[np.floating[Any]]:
    with np.errstate(over="ignore"):
        kept: NDArray[np.floating[Any]] = features.astype(kind)
    if np.isinf(kept).any():
        raise InputError(
            f"descriptors reach {np.abs(features).max():.3g}, too much for {kind} (65,504); "
            "create the gallery in Python with Gallery.create(..., descriptors='float32')"
        )
    return kept
