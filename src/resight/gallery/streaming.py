"""Sightings streamed into a gallery: read here, described by workers, stored here batch by batch.

One process reads, embeds and stores, so images need not lie where workers see them, a worker that
dies takes nothing with it, and embeddings always belong to the model in use when they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.errors import StoreError
from resight.gallery.adding import Added, Batch, Described, read_batch
from resight.gallery.describing import Description, describe_batch, describer, take_given
from resight.gallery.engines.base import Engine, Floats32, Rows
from resight.gallery.manifest import Manifest, load_model
from resight.gallery.view import View
from resight.workers.executors import Executor, InProcess, LocalProcesses, Outcome, run

_TRIES = 3  # how often the model may be replaced between embedding a batch and storing it


class Stream:
    """One run of `Gallery.add`.

    Parameters
    ----------
    engine : Engine
    view : View
        The gallery as it is at the start.
    sightings : Sightings
    described : Described or None
        Descriptors computed before.
    """

    def __init__(
        self, engine: Engine, view: View, sightings: Sightings, described: Described | None
    ) -> None:
        self.result = Added()
        self._engine = engine
        self._model, self._generation = view.model, view.manifest.current.number
        self._descriptor = view.manifest.descriptor
        self._worker_model = describer(view.model)
        self._sightings = sightings
        self._described = described
        self._known = set(view.rows)
        self._begun: dict[range, Batch] = {}  # read, perhaps described, not stored yet

    def run(
        self,
        executor: Executor,
        batch_size: int,
        on_batch: Callable[[list[str]], None] | None = None,
    ) -> Added:
        """Add everything that is new; each batch is stored as a whole once it is described."""
        n = len(self._sightings)
        batches = [range(i, min(i + batch_size, n)) for i in range(0, n, batch_size)]
        function: Callable[..., Description] = describe_batch
        if self._described is not None:
            function = take_given
        if self._described is not None or (
            len(batches) == 1 and isinstance(executor, LocalProcesses)
        ):
            executor = InProcess()  # starting processes would take longer than the work
        for outcome in run(executor, function, batches, self._prepare):
            ids = self._take(outcome, executor)
            if ids and on_batch is not None:
                on_batch(ids)
        return self.result

    def _prepare(self, rows: range) -> tuple[Any, ...] | None:
        """Read a batch just before it is described; None if all of it is there already."""
        if rows not in self._begun:
            found = read_batch(self._sightings, np.asarray(rows, np.intp), self._known, self.result)
            if found is None:
                return None
            self._known.update(found.table.ids.tolist())
            self._begun[rows] = found
        batch = self._begun[rows]
        if self._described is not None:
            return (np.asarray(self._described.features[batch.rows], np.float32),)
        return self._worker_model, self._descriptor, __version__, batch.images

    def _take(self, outcome: Outcome[range, Description], executor: Executor) -> list[str]:
        """Store what a worker described; return the ids that are there for good now."""
        batch = self._begun.pop(outcome.item, None)
        if batch is None:
            return []
        if outcome.value is None:
            reason = str(outcome.error) or type(outcome.error).__name__
            if outcome.error is not None and executor.worker_died(outcome.error):
                reason = "its worker died (killed, or out of memory)"
            text = f"batch of {len(batch.rows)} failed {outcome.attempts} times: {reason}"
            self._fail(batch, dict.fromkeys(range(len(batch.rows)), text))
            return []
        features, failures = outcome.value
        self._fail(batch, failures)
        good = [place for place in range(len(batch.rows)) if place not in failures]
        if not good:
            return []
        kept = batch.select(good)
        self._store(kept, features[good])
        ids: list[str] = kept.table.ids.tolist()
        self.result.added += ids
        return ids

    def _fail(self, batch: Batch, reasons: dict[int, str]) -> None:
        for place, reason in reasons.items():
            path = str(self._sightings.paths[batch.rows[place]])
            self.result.failures.append((path, reason))
            self._known.discard(str(batch.table.ids[place]))

    def _store(self, batch: Batch, features: Floats32) -> None:
        """Embed a batch with the model in use now and store it."""
        for attempt in range(_TRIES):
            manifest = Manifest.read(self._engine)
            generation = manifest.current.number
            if manifest.descriptor != self._descriptor:
                raise StoreError(
                    f"gallery {self._engine.uri}: its model was replaced by one with other "
                    "descriptors. What was added before is safe; run the same command again"
                )
            if generation != self._generation:  # another process replaced the model
                self._model, self._generation = load_model(self._engine, generation), generation
            kept = None if manifest.stored == "none" else features.astype(manifest.stored)
            stored = features if kept is None else kept.astype(np.float32)
            embeddings = np.asarray(self._model.embed(stored), np.float32)
            try:
                self._engine.add(Rows(batch.table, batch.images, kept, embeddings), generation)
                return
            except StoreError:
                replaced = Manifest.read(self._engine).current.number != generation
                if not replaced or attempt == _TRIES - 1:
                    raise
