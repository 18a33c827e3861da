"""A gallery: sightings that are kept, found again and taught."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import crops
from resight.gallery.adding import Added, Batch, Described, read_batch
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine, Rows
from resight.gallery.filters import Filter
from resight.gallery.labels import Entry, Kind
from resight.gallery.manifest import (
    Generation,
    Manifest,
    Origin,
    drop_model,
    load_model,
    store_model,
)
from resight.gallery.searching import Hit, search_view
from resight.gallery.view import View, embed_missing, features_of, load_view, with_new_labels

MEMORY_LIMIT = 4 * 2**30  # bytes of embeddings up to which search is exact and in memory


class Gallery:
    """Sightings kept by an engine, searched by a model.

    Make one with `Gallery.create` or `Gallery.open`. Several processes may use one gallery.

    Examples
    --------
    >>> gallery = Gallery.create("my.gallery", model)              # doctest: +SKIP
    >>> gallery.add(sightings)                                     # doctest: +SKIP
    >>> gallery.search("query.jpg", k=5, exclude_cameras=["door"]) # doctest: +SKIP
    """

    def __init__(self, engine: Engine, memory_limit: int) -> None:
        self.engine = engine
        self.memory_limit = memory_limit
        self._lock = threading.RLock()
        self._view: View | None = None

    @classmethod
    def create(
        cls,
        uri: str | Path,
        model: Any,
        *,
        retention_days: float | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Gallery:
        """Make an empty gallery that searches with `model`.

        Parameters
        ----------
        uri : str or Path
            A folder, an object store or ``postgresql://...`` (see `resight.gallery.engines`).
        model : Model
            A fitted model with embeddings.
        retention_days : float, optional
            After so many days sightings are removed (by `expire`, which the page calls by itself).
        """
        engine = connect(uri)
        if engine.exists():
            raise StoreError(
                f"there is a gallery at {engine.uri} already; open it or choose another"
            )
        local = Path(str(uri))
        if "://" not in str(uri) and local.exists() and (local.is_file() or any(local.iterdir())):
            raise InputError(f"{uri} exists and is no gallery; nothing was written. Choose another")
        _check_days(retention_days)
        width = _feature_width(model)
        first = Generation(1, model.fingerprint, _embedding_width(model, width), "create")
        engine.create()
        engine.start_generation(1, first.width)
        store_model(engine, 1, model)
        Manifest(model.descriptor_fingerprint, width, (first,), retention_days).store(engine)
        return cls(engine, memory_limit)

    @classmethod
    def open(cls, uri: str | Path, *, memory_limit: int = MEMORY_LIMIT) -> Gallery:
        """Open an existing gallery."""
        engine = connect(uri)
        Manifest.read(engine)
        return cls(engine, memory_limit)

    def close(self) -> None:
        """Let go of connections and memory."""
        self._view = None
        self.engine.close()

    @property
    def uri(self) -> str:
        """Where it is kept."""
        return self.engine.uri

    @property
    def model(self) -> Any:
        """The model in use."""
        return self.view.model

    @property
    def view(self) -> View:
        """The gallery as it is now: read again if anybody changed it."""
        with self._lock:
            version = self.engine.version()
            if self._view is None or self._view.version[0] != version[0]:
                manifest = Manifest.read(self.engine)
                model = self._model_for(manifest)
                self._view = load_view(self.engine, manifest, model, self.memory_limit)
            elif self._view.version != version:
                self._view = with_new_labels(self.engine, self._view, version)
            return self._view

    def _model_for(self, manifest: Manifest) -> Any:
        if self._view is not None and self._view.manifest.current.number == manifest.current.number:
            return self._view.model
        model = load_model(self.engine, manifest.current.number)
        if model.descriptor_fingerprint != manifest.descriptor:
            raise StoreError(
                f"gallery {self.uri} holds descriptors {manifest.descriptor}, this version of "
                "resight "
                f"computes {model.descriptor_fingerprint}: the two cannot be compared. Use the "
                "version "
                "that made the gallery, or create a new one and add the images again"
            )
        return model

    def __len__(self) -> int:
        return len(self.view.table)

    # ---- sightings

    def describe(self, images: Sequence[NDArray[np.uint8]]) -> Described:
        """Compute descriptors of RGB images with the gallery's model."""
        model = self.model
        return Described(
            np.asarray(model.describe(list(images)), np.float32), model.descriptor_fingerprint
        )

    def add(
        self,
        sightings: Sightings,
        *,
        described: Described | None = None,
        batch_size: int = 32,
        on_batch: Callable[[list[str]], None] | None = None,
    ) -> Added:
        """Add sightings; each batch is stored as a whole before the next one is begun.

        Parameters
        ----------
        sightings : Sightings
        described : Described, optional
            Descriptors computed before, one row for each sighting.
        on_batch : callable, optional
            Called with the ids of each batch once it is stored for good.

        Returns
        -------
        Added
            Ids added, ids that were there already, and files that could not be read, with reasons.
        """
        view = self.view
        if described is not None:
            self._check_described(described, len(sightings))
        known, result = set(view.rows), Added()
        for start in range(0, len(sightings), batch_size):
            rows = np.arange(start, min(start + batch_size, len(sightings)))
            batch = read_batch(sightings, rows, known, result)
            if batch is not None:
                self._store(self._complete(batch, described))
                ids = batch.table.ids.tolist()
                known.update(ids)
                result.added += ids
                if on_batch is not None:
                    on_batch(ids)
        self._index_if_large()
        return result

    def _complete(self, batch: Batch, described: Described | None) -> Rows:
        """Add the numbers to the images of a batch."""
        if described is None:
            features = self.describe(batch.pictures).features
        else:
            features = np.asarray(described.features[batch.rows], np.float32)
        embeddings = np.asarray(self.model.embed(features), np.float32)
        return Rows(batch.table, batch.images, features, embeddings)

    def _store(self, batch: Rows) -> None:
        """Store a batch; if the model was replaced meanwhile, with the new model's embeddings."""
        for _ in range(3):
            generation = Manifest.read(self.engine).current
            view = self.view
            if generation.number == view.manifest.current.number:
                break
        if batch.embeddings.shape[1] != generation.width:
            batch = replace(
                batch, embeddings=np.asarray(view.model.embed(batch.features), np.float32)
            )
        self.engine.add(batch, generation.number)

    def _check_described(self, described: Described, n_rows: int | None) -> None:
        manifest = self.view.manifest
        if described.fingerprint != manifest.descriptor:
            raise InputError(
                f"these descriptors were made by {described.fingerprint}, the gallery holds "
                f"{manifest.descriptor}; compute them with the gallery's own model"
            )
        shape = (described.features.shape[0] if n_rows is None else n_rows, manifest.width)
        if described.features.shape != shape:
            raise InputError(f"descriptors have shape {described.features.shape}, expected {shape}")
        if not np.isfinite(described.features).all():
            raise InputError("descriptors hold NaN or infinite values; compute them again")

    def remove(self, ids: Sequence[str]) -> int:
        """Remove sightings with all that belongs to them; return how many."""
        unknown = [sighting for sighting in ids if sighting not in self.view.rows]
        if unknown:
            raise InputError(f"no sighting {unknown[0]!r} in this gallery; nothing was removed")
        self.engine.remove(list(ids))
        return len(ids)

    def image(self, sighting: str) -> bytes:
        """Return the stored image of a sighting."""
        found = self.engine.fetch([sighting], "image")
        if sighting not in found:
            raise InputError(f"no sighting {sighting!r} in this gallery; it may have been removed")
        return found[sighting]

    def features(self, ids: Sequence[str]) -> Described:
        """Return the stored descriptors of sightings."""
        manifest = self.view.manifest
        return Described(features_of(self.engine, list(ids), manifest.width), manifest.descriptor)

    # ---- search

    def search(
        self,
        query: str | Path | NDArray[np.uint8] | Described,
        k: int = 20,
        *,
        cameras: Sequence[str] = (),
        exclude_cameras: Sequence[str] = (),
        after: float | None = None,
        before: float | None = None,
        persons: Sequence[str] = (),
    ) -> list[Hit]:
        """Find the sightings most like a query.

        Parameters
        ----------
        query : path of an image, RGB uint8 array, or Described
        k : int
            How many; all that the conditions leave, if they are fewer.
        cameras, exclude_cameras, after, before, persons
            Conditions (see `Filter`); times in seconds, both ends included.
        """
        where = Filter(tuple(cameras), tuple(exclude_cameras), after, before, tuple(persons))
        return self.search_described(self._described(query), k, where)[0]

    def search_like(self, sighting: str, k: int = 20, where: Filter | None = None) -> list[Hit]:
        """Find the sightings most like a stored one, itself left out."""
        if sighting not in self.view.rows:
            raise InputError(f"no sighting {sighting!r} in this gallery; it may have been removed")
        return self.search_described(self.features([sighting]), k, where, like=sighting)[0]

    def search_described(
        self, described: Described, k: int, where: Filter | None = None, *, like: str = ""
    ) -> list[list[Hit]]:
        """Search for many queries at once, given as descriptors (n_queries, n_features)."""
        if k < 1:
            raise InputError(f"k={k}: ask for at least one result")
        self._check_described(described, None)
        view = self.view
        where = where or Filter()
        where.check_cameras(view.cameras)
        queries = np.asarray(view.model.embed(described.features), np.float32)
        return search_view(self.engine, view, queries, k, where, like)

    def _described(self, query: str | Path | NDArray[np.uint8] | Described) -> Described:
        if isinstance(query, Described):
            return query
        name = "the query"
        if isinstance(query, (str, Path)):
            name = str(query)
            query = crops.decode(crops.read(Path(query)), name)
        crops.check(query, name)
        return self.describe([query])

    # ---- models

    def rebuild(
        self,
        model: Any,
        *,
        origin: Origin = "rebuild",
        trained_on: Sequence[str] = (),
        on_step: Callable[[float], None] | None = None,
    ) -> None:
        """Embed every sighting with another model, then switch to it in one step.

        Images are not touched: embeddings come from the stored descriptors. Until the switch every
        search uses the old model; a process killed before it leaves the gallery as it was.

        Parameters
        ----------
        model : Model
            Fitted on the same descriptors.
        trained_on : sequence of str
            Sightings of this gallery that it was fitted on, so that `forget` knows.
        on_step : callable, optional
            Called with the share that is done.
        """
        manifest = Manifest.read(self.engine)
        if model.descriptor_fingerprint != manifest.descriptor:
            raise InputError(
                f"the model describes images by {model.descriptor_fingerprint}, the gallery holds "
                f"{manifest.descriptor}; fit a model on the same descriptors or create a new "
                "gallery"
            )
        number = max(g.number for g in manifest.history) + 1
        width = _embedding_width(model, manifest.width)
        self.engine.start_generation(number, width)
        fresh = replace(
            manifest,
            history=(*manifest.history, Generation(number, model.fingerprint, width, origin)),
        )
        for share in self._embed_all(fresh, model):
            if on_step is not None:
                on_step(share)
        store_model(self.engine, number, model, trained_on)
        base, *refits = fresh.history
        replace(fresh, history=(base, *refits[-2:])).store(self.engine)
        for old in refits[:-2]:
            drop_model(self.engine, old.number)

    def _embed_all(self, manifest: Manifest, model: Any, step: int = 512) -> Iterator[float]:
        table = self.engine.table()
        for start in range(0, len(table), step):
            part = table.select(np.arange(start, min(start + step, len(table))))
            embed_missing(self.engine, manifest, model, part, set())
            yield min(1.0, (start + step) / len(table))

    def undo_rebuild(self) -> None:
        """Go back to the model before the current one."""
        manifest = Manifest.read(self.engine)
        if len(manifest.history) < 2:
            raise InputError("there is no earlier model to go back to")
        replace(manifest, history=manifest.history[:-1]).store(self.engine)
        drop_model(self.engine, manifest.current.number)

    def build_index(self) -> None:
        """Build the engine's approximate index over the current embeddings."""
        manifest = self.view.manifest
        self.engine.build_index(manifest.current.number)
        manifest.with_current(indexed=len(self)).store(self.engine)

    def _index_if_large(self) -> None:
        view = self.view
        large = len(view.table) * view.manifest.current.width * 4 > self.memory_limit
        if large and len(view.table) > 2 * view.manifest.current.indexed:
            self.build_index()

    # ---- teaching

    def teach(self, kind: Kind, a: str, b: str = "", *, person: str = "", who: str = "") -> Entry:
        """Record a verdict, a name or an undo; refuse what contradicts the others."""
        entry = Entry(kind, a, b, person=person, who=who)
        with self._lock:
            self.view.labels.check(entry)
            self.engine.append("labels", entry.key, entry.dump())
        return entry

    def retain(self, days: float | None) -> None:
        """Set after how many days sightings are removed; None keeps them."""
        _check_days(days)
        replace(Manifest.read(self.engine), retention_days=days).store(self.engine)

    def info(self) -> dict[str, Any]:
        """Describe the gallery in plain data."""
        view = self.view
        generation, table = view.manifest.current, view.table
        known = {person for person in view.persons.tolist() if person}
        times = table.times[~np.isnan(table.times)]
        return {
            "uri": self.uri,
            "sightings": len(table),
            "persons": len(known),
            "labelled": int((view.persons != "").sum()),
            "cameras": {c: int((table.cameras == c).sum()) for c in view.cameras},
            "times": [float(times.min()), float(times.max())] if len(times) else None,
            "descriptor": view.manifest.descriptor,
            "model": generation.fingerprint,
            "model_origin": generation.origin,
            "model_since": generation.when,
            "dimensions": generation.width,
            "calibrated": view.model.probability(np.zeros(1)) is not None,
            "search": "exact, in memory" if view.index is not None else "by the engine",
            "indexed": generation.indexed,
            "retention_days": view.manifest.retention_days,
            "taught": len(view.labels.active),
        }


def _check_days(days: float | None) -> None:
    if days is not None and not days > 0:
        raise InputError(f"retention of {days:g} days: give a number above 0, or none to keep all")


def _feature_width(model: Any) -> int:
    """Describe a picture of nothing to learn how long descriptors are."""
    return int(np.asarray(model.describe([np.zeros((128, 64, 3), np.uint8)])).shape[1])


def _embedding_width(model: Any, n_features: int) -> int:
    """Embed nothing much to learn the width; a metric without embeddings says why it has none."""
    return int(np.asarray(model.embed(np.zeros((1, n_features), np.float32))).shape[1])
