"""Sightings on their way into a gallery: read here, described by workers, stored batch by batch.

One process reads, embeds and stores, so images need not lie where workers see them, a worker that
dies takes nothing with it, and embeddings always belong to the model in use when they are stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.features import describing
from resight.features.describing import Extraction, Failure, Task, crop_key
from resight.gallery import crops
from resight.gallery.engines.base import Engine, Floats32, Rows, Table
from resight.gallery.manifest import Manifest, Stored, load_model
from resight.gallery.view import View
from resight.validation import check_array
from resight.workers.executors import Executor, Outcome

if TYPE_CHECKING:
    from resight.features.store import FeatureStore


class Described(NamedTuple):
    """Descriptors (n, n_features) and the fingerprint of what computed them.

    `thumbs` are the pictures, small (see `same_pictures`), where they are at hand.
    """

    features: Floats32
    fingerprint: str
    thumbs: NDArray[np.float32] | None = None


def check_described(manifest: Manifest, described: Described, n_rows: int | None = None) -> None:
    """Refuse descriptors of another kind or shape, and values that are not finite."""
    if described.fingerprint != manifest.descriptor:
        raise InputError(
            f"these descriptors were computed by {described.fingerprint}, those of the "
            f"gallery by {manifest.descriptor}; compute them with the gallery's model"
        )
    check_array(described.features, "descriptors", (n_rows, manifest.width))


@dataclass
class Added:
    """What became of the sightings given to `Gallery.add`.

    Attributes
    ----------
    added, already : list of str
        Ids of those that are new, and of those that were there.
    failures : list of Failure
    described : int
        Images that had to be described: their vectors were not given or in a feature store.
    imageless : int
        Sightings that are known by their vector alone.
    """

    added: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    described: int = 0
    imageless: int = 0


class _Batch(NamedTuple):
    """New sightings whose images were read."""

    table: Table
    rows: NDArray[np.intp]  # in the sightings given
    images: list[bytes]  # or what the page shows where there is none
    features: Floats32  # NaN where they are not known yet

    @property
    def missing(self) -> NDArray[np.intp]:
        """Places that are to be described."""
        return np.flatnonzero(np.isnan(self.features).any(axis=1))


class Stream:
    """One run of `Gallery.add`, from the `view` of the gallery at its start.

    `given` holds vectors that were computed before: one for each sighting, or some of them.
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
        self._engine, self._sightings, self._imageless = engine, sightings, imageless
        self._model, self._manifest = view.model, view.manifest
        self._descriptor = view.model.descriptor
        self._given = given.features if isinstance(given, Described) else None
        stored = None if given is None or isinstance(given, Described) else given
        self._lookup = None if stored is None else stored.lookup(self._descriptor)
        self._known = set(view.rows)
        self._begun: dict[range, _Batch | None] = {}  # read, perhaps described, not stored yet

    def run(
        self, executor: Executor, size: int, on_batch: Callable[[list[str]], None] | None = None
    ) -> Added:
        """Add everything that is new; each batch is stored as a whole once it is described."""
        n = len(self._sightings)
        batches = [range(i, min(i + size, n)) for i in range(0, n, size)]
        for outcome in describing.describe_by(executor, self._descriptor, batches, self._prepare):
            ids = self._take(outcome)
            if ids and on_batch is not None:
                on_batch(ids)
        return self.result

    def _prepare(self, rows: range) -> Task | None:
        """Read a batch just before it is described; None if there is nothing to describe."""
        if rows not in self._begun:  # or it is tried again
            self._begun[rows] = self._read_batch(rows)
        batch = self._begun[rows]
        if batch is None or not len(batch.missing):
            return None
        contents = {str(batch.table.ids[place]): batch.images[place] for place in batch.missing}
        new = [describing.Crop(key, key, digest_of(image), None) for key, image in contents.items()]
        return Task(new, contents, None)

    def _read_batch(self, rows: range) -> _Batch | None:
        """Read the images of some rows that are new; None if there are none."""
        found: dict[str, tuple[int, str, bytes]] = {}
        for row in rows:
            try:
                sighting, key, content = self._read(row)
            except InputError as error:
                self._fail(row, str(error))
                continue
            if sighting in self._known:
                self.result.already.append(sighting)
            else:
                self._known.add(sighting)
                found[sighting] = (row, key, content)
        if not found:
            return None
        places, keys, contents = zip(*found.values(), strict=True)
        new, some = np.array(places, np.intp), self._sightings.select(places)
        if self._given is not None:
            features = np.array(self._given[new], np.float32)
        elif self._lookup is not None:
            features = self._lookup(keys)
        else:
            features = np.full((len(new), self._manifest.width), np.nan, np.float32)
        names = np.array([Path(str(path)).name for path in some.paths])
        shown = (np.array([*found]), some.persons, some.cameras, some.times, some.sequences, names)
        table = Table(*shown, added=np.full(len(new), time.time()))
        return _Batch(table, new, list(contents), features)

    def _read(self, row: int) -> tuple[str, str, bytes]:
        """Return the id of a sighting, its key in a feature store and the image to be stored."""
        path = self._sightings.root / str(self._sightings.paths[row])
        if self._imageless and self._given is not None and not path.is_file():
            self.result.imageless += 1
            shows, key, kept = self._given[row].tobytes(), "", crops.NO_IMAGE
        else:
            content, box = crops.read(path), describing.box_of(self._sightings, row)
            most = crops.MAX_PIXELS if box is None else images.MAX_PIXELS
            shows = kept = crops.keep(content, images.read(content, str(path), most), box)[0]
            key = crop_key(digest_of(content), box)
        camera, time_ = str(self._sightings.cameras[row]), float(self._sightings.times[row])
        # The id is what it shows, where and when, so that a file that is added twice is there once.
        return digest_of(shows, camera, repr(time_))[:24], key, kept

    def _take(self, outcome: Outcome[range, Extraction]) -> list[str]:
        """Store what a worker described; return the ids that are there for good now."""
        batch = self._begun.pop(outcome.item)
        if batch is None:
            return []
        missing, reasons = batch.missing, {}
        if outcome.error is not None:
            reasons = dict.fromkeys(missing.tolist(), f"batch of {len(missing)} {outcome.reason}")
        elif outcome.value is not None:
            batch.features[missing[outcome.value.kept]] = outcome.value.features
            self.result.described += len(outcome.value.kept)
            reasons = {int(missing[row]): reason for row, _, reason in outcome.value.failures}
        for place, reason in reasons.items():
            self._fail(int(batch.rows[place]), reason)
            self._known.discard(str(batch.table.ids[place]))
        good = np.array([place not in reasons for place in range(len(batch.rows))], bool)
        table = batch.table.select(good)
        if len(table):
            self._store(table, list(compress(batch.images, good)), batch.features[good])
        ids: list[str] = table.ids.tolist()
        self.result.added += ids
        return ids

    def _fail(self, row: int, reason: str) -> None:
        self.result.failures.append(Failure(row, str(self._sightings.paths[row]), reason))

    def _store(self, table: Table, pictures: list[bytes], features: Floats32) -> None:
        """Embed a batch and store it; what another process made of the model meanwhile holds."""
        stored, before = self._manifest.stored, self._manifest
        kept = as_stored(features, stored)
        embeddings = self._embed(kept)
        with self._engine.transaction():
            self._manifest = Manifest.read(self._engine)
            if self._manifest.descriptor != before.descriptor:
                raise StoreError(
                    f"gallery {self._engine.uri}: its model was replaced by one with other "
                    "descriptors. What was added before is safe; run the same command again"
                )
            generation = self._manifest.current.number
            if generation != before.current.number:
                self._model = load_model(self._engine, generation)
                embeddings = self._embed(kept)
            rows = Rows(table, pictures, None if stored == "none" else kept, embeddings)
            self._engine.add(rows, generation)

    def _embed(self, features: NDArray[np.floating[Any]]) -> Floats32:
        return np.asarray(self._model.embed(features.astype(np.float32)), np.float32)


def as_stored(features: Floats32, kind: Stored) -> NDArray[np.floating[Any]]:
    """Round descriptors as they are stored, so that a stored sighting finds itself exactly."""
    with np.errstate(over="ignore"):
        kept: NDArray[np.floating[Any]] = features.astype("float32" if kind == "none" else kind)
    if np.isinf(kept).any() and np.isfinite(features).all():
        raise InputError(
            f"descriptors reach {np.abs(features).max():.3g}, too much for {kind} (65,504); "
            "create the gallery in Python with Gallery.create(..., descriptors='float32')"
        )
    return kept
