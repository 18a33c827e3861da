"""A gallery: sightings that are kept, found again and taught."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight._progress import log
from resight.datasets.sightings import Sightings, require_sightings
from resight.errors import InputError
from resight.gallery.adding import Added, Described, Stream, as_stored, check_described
from resight.gallery.crops import NO_IMAGE, Query, picture_of, thumb
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.filters import Filter
from resight.gallery.labels import Entry, Kind, gone
from resight.gallery.log import Actor, Writer, append, operator
from resight.gallery.log import Entry as Act
from resight.gallery.manifest import DESCRIPTORS, Manifest, Origin, Stored, check_days, drop_model
from resight.gallery.parts import ChangedError, Parts
from resight.gallery.people import Card, people
from resight.gallery.rebuilding import BATCH, create, rebuild
from resight.gallery.reranking import Rerank
from resight.gallery.searching import Hits, Search
from resight.gallery.sharing import Shared, Steps, run_alone
from resight.gallery.view import View, current_view, features_of, summary
from resight.images import read
from resight.validation import check_count, check_name, check_names
from resight.workers.executors import Executor, InProcess

if TYPE_CHECKING:
    from resight.explanation.explanation import Explainer
    from resight.features.store import FeatureStore
    from resight.models.model import Model
    from resight.workers.dask_cluster import ClusterExecutor

_ROUNDS = 5
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

    def __init__(
        self, engine: Engine, memory_limit: int, cluster: ClusterExecutor | None = None
    ) -> None:
        self.engine = engine
        self._parts = None if cluster is None else Parts(engine, cluster)
        self.memory_limit = memory_limit
        self._lock = threading.RLock()
        self._view: View | None = None
        self._writer = Writer(engine.uri)  # connects when there is something to write

    @classmethod
    def create(
        cls,
        uri: str | Path,
        model: Model,
        *,
        retention_days: float | None = None,
        descriptors: Stored = DESCRIPTORS,
        memory_limit: int = MEMORY_LIMIT,
    ) -> Gallery:
        """Make an empty gallery that searches with `model`.

        Parameters
        ----------
        uri : str or Path
            A folder or ``postgresql://...`` (see `resight.gallery.engines`).
        model : Model
            A fitted model with embeddings.
        retention_days : float, optional
            After so many days sightings are removed (by `expire`, which the page calls by itself).
        descriptors : "float32" | "float16" | "none"
            How descriptors are stored. "none" keeps only images and embeddings: a tenth of the
            space, but another model has to describe every image again.
        """
        return cls(create(uri, model, retention_days, descriptors), memory_limit)

    @classmethod
    def open(
        cls,
        uri: str | Path,
        *,
        memory_limit: int = MEMORY_LIMIT,
        cluster: ClusterExecutor | None = None,
    ) -> Gallery:
        """Open an existing gallery.

        Parameters
        ----------
        memory_limit : int
            Bytes of embeddings up to which they are held in memory.
        cluster : ClusterExecutor, optional
            From ``resight.cluster(address)``: its workers hold the embeddings in parts and search
            them; see docs/clusters.md.
        """
        engine = connect(uri)
        Manifest.read(engine)
        log.debug("opened gallery %s", engine.uri)
        return cls(engine, memory_limit, cluster)

    def close(self) -> None:
        """Let go of connections and memory."""
        self._view = None
        self._writer.close()
        self.engine.close()

    @property
    def uri(self) -> str:
        """Where it is kept."""
        return self.engine.uri

    @property
    def model(self) -> Model:
        """The model in use."""
        return self.view.model

    @property
    def standing(self) -> bool:
        """Whether crops are taller than wide: our descriptors are for people, networks for all."""
        return not self.model.networks

    @property
    def view(self) -> View:
        """The gallery as it is now: read again if anybody changed it."""
        with self._lock:
            self._view = current_view(self.engine, self._view, self.memory_limit)
            return self._view

    @property
    def shares_products(self) -> bool:
        """Whether searches, as last seen, are products in memory and little else."""
        view = self._view
        known = view is not None and view.index is not None and view.manifest.stored != "none"
        return known and self._parts is None

    def __len__(self) -> int:
        return len(self.view.table)

    # ---- sightings

    def describe(self, images: Sequence[NDArray[np.uint8]]) -> Described:
        """Compute descriptors of RGB images with the gallery's model."""
        model = self.model
        vectors = np.asarray(model.describe(list(images)), np.float32)
        thumbs = np.array([thumb(image) for image in images])
        rounded = as_stored(vectors, self.view.manifest.stored).astype(np.float32)
        return Described(rounded, model.descriptor_fingerprint, thumbs)

    def own_vectors(self, vectors: ArrayLike) -> Described:
        """Take a user's own vectors (n, n_features), if the model was fitted on such vectors."""
        model, rows = self.model, np.asarray(vectors, np.float32)
        if model.descriptors:
            raise InputError(
                f"the model of {self.uri} describes images itself ({model.descriptor.name}), so "
                "vectors of your own cannot be compared with its; give images"
            )
        rounded = as_stored(rows, self.view.manifest.stored).astype(np.float32)
        return Described(rounded, model.descriptor_fingerprint)

    def add(
        self,
        sightings: Sightings,
        *,
        described: Described | None = None,
        store: FeatureStore | str | Path | None = None,
        batch_size: int = 32,
        on_batch: Callable[[list[str]], None] | None = None,
        executor: Executor | None = None,
        imageless: bool = False,
    ) -> Added:
        """Add sightings; each batch is stored as a whole, and what is there already passed over.

        Parameters
        ----------
        sightings : Sightings
        described : Described, optional
            Descriptors computed before, one row for each sighting.
        store : FeatureStore or path, optional
            Images whose descriptors are in this store are not described again.
        on_batch : callable, optional
            Called with the ids of each batch once it is stored for good.
        executor : Executor, optional
            Who describes the images: ``executors.local(jobs)`` or ``resight.cluster(address)``.
            By default this process.
        imageless : bool
            Whether sightings whose file does not exist are stored all the same, by the vectors of
            `described` alone; the page shows a placeholder.

        Returns
        -------
        Added
        """
        check_count(batch_size, "batch_size")
        require_sightings(sightings)
        if described is not None:
            check_described(self.view.manifest, described, len(sightings))
        if isinstance(store, str | Path):
            from resight.features.store import FeatureStore

            store = FeatureStore(store)
        stream = Stream(self.engine, self.view, sightings, described or store, imageless)
        result = stream.run(executor or InProcess(), batch_size, on_batch)
        self._index_if_large()
        return result

    def remove(self, ids: Sequence[str]) -> int:
        """Remove sightings with all that belongs to them; return how many."""
        ids = check_names(ids, "ids").tolist()
        unknown = [sighting for sighting in ids if sighting not in self.view.rows]
        if unknown:
            raise InputError(f"no sighting {unknown[0]!r} in this gallery; nothing was removed")
        self.engine.remove(ids)
        return len(ids)

    def image(self, sighting: str) -> bytes:
        """Return the stored image of a sighting."""
        found = self.engine.fetch([sighting], "image")
        if not found:
            raise gone(sighting)
        return found[sighting]

    def features(self, ids: Sequence[str]) -> Described:
        """Return the descriptors of sightings, stored or computed from their images."""
        view, ids = self.view, check_names(ids, "ids").tolist()
        found = features_of(self.engine, view.manifest, view.model, list(ids))
        for sighting in ids:
            if sighting not in found:
                raise gone(sighting)
        features = np.array([found[key] for key in ids]).reshape(len(ids), view.manifest.width)
        return Described(features, view.manifest.descriptor)

    # ---- search

    def search(
        self,
        query: Query | Described | list[Query],
        k: int = 20,
        *,
        cameras: Sequence[str] = (),
        exclude_cameras: Sequence[str] = (),
        after: float | None = None,
        before: float | None = None,
        persons: Sequence[str] = (),
        rerank: Rerank | None = None,
        by_track: bool = False,
        same_pictures: bool = False,
    ) -> Hits:
        """Find the sightings most like a query.

        Parameters
        ----------
        query : path of an image, RGB uint8 array, or Described; or a list of the first two
            Several images, or Described of several rows, are taken together: they show one person.
            Their embeddings are averaged, which ranks as the mean of their squared distances does;
            probabilities and the answer pool their evidence, the mean of their log-distances.
        k : int
            How many; all that the conditions leave, if they are fewer.
        cameras, exclude_cameras, after, before, persons
            Conditions (see `Filter`); times in seconds, both ends included.
        rerank : "k-reciprocal" | "ol-mans", optional
            Re-rank the first 500 by their neighbourhoods, or by labelled people too:
            post-processing that uses the gallery.
        by_track : bool
            Return each track once, by the mean of the squared distances to its sightings.
        same_pictures : bool
            Whether stored pictures that are the query itself stay in the ranking; they are in
            ``Hits.same_pictures`` in any case.
        """
        where = Filter(cameras, exclude_cameras, after, before, persons)
        if not isinstance(query, Described):
            query = self._described(query if isinstance(query, list) else [query])
        how: Any = {"rerank": rerank, "by_track": by_track, "same_pictures": same_pictures}
        return self.search_described(query, k, where, together=True, **how)[0]

    def search_many(
        self, queries: Sequence[Query], k: int = 20, where: Filter | None = None, **how: Any
    ) -> list[Hits]:
        """Search for several images at once, with the options of `search_described`.

        Re-ranking ``"cross-view"`` compares them. With `together` they are one query (see
        `search`), and the list has one element.
        """
        return self.search_described(self._described(queries), k, where, **how) if queries else []

    def _described(self, queries: Sequence[Query]) -> Described:
        return self.describe([picture_of(query, self.standing) for query in queries])

    def search_like(
        self, sighting: str, k: int = 20, where: Filter | None = None, *, by_track: bool = False
    ) -> Hits:
        """Find the sightings most like a stored one, which is left out."""
        described, image = self.features([sighting]), self.image(sighting)
        if image != NO_IMAGE:
            described = described._replace(thumbs=thumb(read(image))[None])
        how: Any = {"like": [sighting], "together": True, "by_track": by_track}
        return self.search_described(described, k, where, **how)[0]

    def search_described(
        self, described: Described, k: int, where: Filter | None = None, **how: Any
    ) -> list[Hits]:
        """Search for many queries at once, given as descriptors (n_queries, n_features).

        `how` may be `rerank`, `by_track` and `same_pictures` of `search`; `together`: they are one
        query; `like`: stored sightings whose descriptors come first, and which are left out.
        """
        return run_alone(self.search_steps(described, k, where or Filter(), **how))[1]

    def search_steps(
        self, described: Described, k: int, where: Filter, *, together: bool = False, **how: Any
    ) -> Steps[tuple[View, list[Hits]]]:
        """Search as `search_described` does, in steps (see `sharing`); return the view, too."""
        check_count(k, "k")
        tries = 0
        while True:
            view = self.view
            check_described(view.manifest, described)
            where.check_cameras(view.cameras)
            search = Search(self.engine, view, k, where, parts=self._parts, **how)
            try:
                return view, (yield from search.steps(described, together))
            except ChangedError:  # while a cluster was asked: once more, as it is now
                tries += 1
                if tries == _ROUNDS:
                    raise

    def explainer(self) -> Explainer:
        """Return what explains distances, beside those between some sightings of the gallery."""
        from resight.explanation.explanation import N_PAIRS, Explainer

        view = self.view
        unnamed = np.flatnonzero(view.persons == "")  # whom no model has learned from
        rows = unnamed if len(unnamed) >= N_PAIRS else np.arange(len(view.table))
        if not len(rows):
            return Explainer(view.model)
        n_drawn = min(len(rows), 4 * N_PAIRS)
        drawn = np.sort(np.random.default_rng(0).choice(rows, n_drawn, replace=False))
        references = self.features(view.table.ids[drawn].tolist()).features
        return Explainer(view.model, references, view.persons[drawn])

    # ---- models

    def rebuild(
        self,
        model: Model,
        *,
        origin: Origin = "rebuild",
        trained_on: Sequence[str] = (),
        on_step: Callable[[float], None] | None = None,
        batch_size: int = BATCH,
    ) -> None:
        """Embed every sighting with another model, then switch to it in one step.

        Embeddings come from the stored descriptors (without those, from the images). Until the
        switch every search uses the old model. Killed at any moment and called again with the same
        model, it embeds only what is missing.

        Parameters
        ----------
        model : Model
            Fitted on the same descriptors.
        trained_on : sequence of str
            Sightings of this gallery that it was fitted on, so that `forget` knows.
        on_step : callable, optional
            Called with the share that is done.
        """
        check_count(batch_size, "batch_size")
        rebuild(self.engine, model, origin, trained_on, on_step, batch_size)
        self._index_if_large()

    def undo_rebuild(self) -> None:
        """Go back to the model before the current one."""
        with self.engine.transaction():
            manifest = Manifest.read(self.engine)
            if len(manifest.history) < 2:
                raise InputError("no earlier model to go back to")
            manifest.with_history(manifest.history[:-1]).store(self.engine)
            drop_model(self.engine, manifest.current.number)

    def build_index(self) -> None:
        """Build the engine's approximate index over the current embeddings."""
        view, number = self.view, self.view.manifest.current.number
        self.engine.build_index(number)
        with self.engine.transaction():
            manifest = Manifest.read(self.engine)
            if manifest.current.number == number:
                indexed = replace(manifest.current, indexed=len(view.table))
                replace(manifest, history=(*manifest.history[:-1], indexed)).store(self.engine)

    def _index_if_large(self) -> None:
        view, now = self.view, self.view.manifest.current
        large = len(view.table) * now.width * 4 > self.memory_limit
        if self.engine.approximate and large and len(view.table) > 2 * now.indexed:
            self.build_index()

    # ---- teaching

    def teach(
        self,
        kind: Kind,
        a: str,
        b: str = "",
        *,
        person: str = "",
        more: Sequence[str] = (),
        by: Actor | None = None,
    ) -> Entry:
        """Record a verdict, a name or an undo; refuse what contradicts the others.

        Where the gallery asks for a second person, "same" counts once another one said it, too.
        """
        return self.answer(lambda view: [Entry(kind, a, b, person, more=tuple(more))], by)[0]

    def answer(self, make: Callable[[View], list[Entry]], by: Actor | None = None) -> list[Entry]:
        """Record the entries that `make` derives from the gallery as it is then; one undo for all.

        From the moment `make` looks until they are written nobody else answers.
        """
        by, key = by or operator("python"), secrets.token_hex(8)
        written: list[Entry] = []
        with self._lock:
            before = self.view  # what takes long is read before others have to wait
            try:
                with self.engine.transaction():
                    for number, made in enumerate(make(self.view)):
                        given = replace(made, key=key, who=check_name(by.who, "who"))
                        view = self.view
                        entry = view.labels.second(given) if view.manifest.second_person else given
                        view.labels.check(entry)
                        place = f"{key}+{number}" if number else key
                        self.engine.append("labels", place, entry.dump())
                        append(self.engine, [Act(by, entry.kind, *given.concerns(), entry.when)])
                        written.append(entry)
            except BaseException:
                self._view = before  # without what was taken back
                raise
        return written

    def people(self, query: str = "", page: int = 1, **how: Any) -> tuple[list[Card], int]:
        """Return a page of people and how many there are; see `resight.gallery.people.people`."""
        return people(self.view, query, page, **how)

    # ---- the log

    def record(self, by: Actor, what: str, **said: Any) -> None:
        """Write an entry of the log; it is durable on return.

        `query` and `shown` are sightings (or digests of files, as ``sha256:...``), `persons` names,
        `begin` the time; the rest are facts that name nobody. Whom the entry concerns is left out
        if anybody of them was erased meanwhile.
        """
        self._writer.write(self._entry(by, what, **said))

    def recording(self, by: Actor, what: str, **said: Any) -> Shared:
        """Return the step after which an entry is durable (see `sharing`)."""
        return Shared(self._writer.write_all, self._entry(by, what, **said))

    def _entry(
        self,
        by: Actor,
        what: str,
        *,
        begin: float | None = None,
        query: Sequence[str] = (),
        shown: Sequence[str] = (),
        persons: Sequence[str] = (),
        **facts: Any,
    ) -> Act:
        """Make what `record` writes."""
        view = self.view
        check_name(by.purpose, "purpose", 500)
        if (query or shown) and view.manifest.asks_purpose and not by.purpose:
            raise InputError(
                "this gallery asks for a purpose: give --purpose on the command line; on the page, "
                "log out and state it when you log in; a program sends the header Resight-Purpose"
            )
        anchors = {p: str(view.table.ids[view.persons == p][0]) for p in {*persons} & view.named}
        given = {"query": list(query), "shown": list(shown), "persons": anchors}
        subjects = {name: value for name, value in given.items() if value}
        facts = {"gallery": self.engine.place, "model": view.manifest.current.fingerprint} | facts
        return Act(by, what, facts, subjects, time.time() if begin is None else begin)

    def retain(self, days: float | None) -> None:
        """Set after how many days sightings are removed; None keeps them."""
        self.require(retention_days=days)

    def require(self, **rules: Any) -> None:
        """Change rules, such as `asks_purpose`, `log_days` or `prior` (see `Manifest`)."""
        for name in ("retention_days", "log_days"):
            check_days(rules.get(name))
        with self.engine.transaction():
            changed = replace(Manifest.read(self.engine), **rules)
            changed.rates.check()
            changed.store(self.engine)

    def info(self) -> dict[str, object]:
        """Describe the gallery in plain data."""
        facts = summary(self.engine, self.view)
        return facts if self._parts is None else {**facts, "search": "exact, over a cluster"}
