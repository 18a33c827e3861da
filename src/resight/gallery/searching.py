"""From query embeddings to hits: exact in memory, or candidates from the engine scored again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.gallery import crops
from resight.gallery.adding import Described
from resight.gallery.confidence import Asked, Bools, Judgement, Presence, judge, not_judged
from resight.gallery.engines.base import Engine, Floats32, or_none
from resight.gallery.filters import Filter
from resight.gallery.index import ExactIndex, Rows, squared
from resight.gallery.labels import Verdict, gone
from resight.gallery.parts import Parts
from resight.gallery.reranking import CANDIDATES, Found, Rerank, check, rerank
from resight.gallery.sharing import Shared, Steps
from resight.gallery.view import View, embeddings_of

_LOOKED = 32  # nearest sightings that are compared with the query's picture
_ZERO = 1e-9  # of the median distance: equal vectors, where there are no pictures
_MORE = 4  # candidates asked from an engine for each result wanted


@dataclass(frozen=True)
class Hit:
    """One sighting that was found.

    Attributes
    ----------
    rank : int
        From 1.
    distance : float
        In units of the distance at which same and different are equally likely, if the model is
        calibrated; smaller = more alike.
    raw_distance : float
        The learned squared distance.
    probability : float or None
        That its unit is the query's person, if that is known (see `confidence`).
    verdict : "same" | "different" | "waiting" | None
        What was taught about it and the query.
    rank_before : int or None
        Its rank by distance, if the results were re-ranked.
    track : str
        The name of its track, empty if it has none.
    unit : str
        Equal for sightings that are judged together.
    same_picture : bool
        Whether it is the query's picture itself, perhaps encoded or sized differently.
    trained : bool
        Whether the model learned from it; it has no probability then.
    """

    rank: int
    id: str
    person: str
    camera: str
    time: float | None
    source: str
    distance: float
    raw_distance: float
    probability: float | None
    verdict: Verdict | None = None
    rank_before: int | None = None
    track: str = ""
    unit: str = ""
    same_picture: bool = False
    trained: bool = False


class Hits(list[Hit]):
    """What one query found, nearest first.

    Attributes
    ----------
    presence : Presence or None
        Whether the query's person is there at all; None where nothing can be judged.
    note : str
        Why nothing can be judged, if so.
    missing : str
        What was not searched, if a worker of a cluster was lost; empty if the answer is complete.
    same_pictures : sequence of Hit
        Stored pictures that are the query's own; left out of the ranking unless asked for.
    """

    presence: Presence | None = None
    note: str = ""
    missing: str = ""
    same_pictures: Sequence[Hit] = ()


@dataclass(frozen=True)
class Search:
    """A search of a view: how many are wanted, of which sightings, and in which order.

    `like` are the stored sightings that the query comes from. With `rerank` the first candidates
    of each query are re-ranked (see `reranking`). With `by_track` a track is one hit: its distance
    is the mean over its sightings, the nearest of which stands for it. Stored pictures that are a
    query's own are left out of its ranking unless `same_pictures`. With `parts` the nearest are
    found by the workers of a cluster.
    """

    engine: Engine
    view: View
    k: int
    where: Filter
    like: Sequence[str] = ()
    rerank: Rerank | None = None
    by_track: bool = False
    same_pictures: bool = False
    parts: Parts | None = None
    missing: set[int] = field(default_factory=set, init=False)  # parts that gave no answer

    def steps(self, described: Described, together: bool) -> Steps[list[Hits]]:
        """Return the k best hits of each query, or of all as one."""
        asked = self._asked(described, together)
        if self.rerank is not None:
            check(self.rerank, len(asked), self.by_track)
        given = self._allowed()
        if not len(given) or not asked:
            return [Hits() for _ in asked]
        queries = np.array([one.embedding for one in asked])
        wanted = max(self.k, 0 if self.rerank is None else CANDIDATES)
        # As many more as may be the query's own pictures.
        depth = max(wanted + _LOOKED, _MORE * self.k if self.by_track else 0)
        found, masks, copies = [], [], []
        nearest = yield from self._nearest_shared(queries, depth, given)
        for one, near in zip(asked, nearest, strict=True):
            own, mask = self._own_pictures(one.thumbs, near), given
            if len(own) and not self.same_pictures:
                mask = given.copy()
                mask[own] = False
            if self.by_track:
                near = self._tracks(one.embedding, mask, near, depth)
            elif mask is not given:
                left = mask[near.rows]
                near = Found(near.rows[left], near.distances[left])
            found.append(near)
            masks.append(mask)
            copies.append(own)
        if self.rerank is not None:
            found = rerank(self.rerank, queries, found, self._embeddings, self.view.persons)
        return [self._judged(*one) for one in zip(asked, found, masks, copies, strict=True)]

    def _asked(self, described: Described, together: bool) -> list[Asked]:
        """Embed queries, the first of which are the stored sightings `like`; or all as one."""
        view, n = self.view, len(self.like)
        if lost := [key for key in self.like if key not in view.rows]:
            raise gone(lost[0])
        queries = self._embeddings([view.rows[key] for key in self.like])
        if n < len(described.features):
            more = np.asarray(view.model.embed(described.features[n:]), np.float32)
            queries = np.concatenate([queries, more]) if n else more
        outside, thumbs = np.zeros(len(queries), bool), described.thumbs
        if view.calibration is not None:
            outside = view.calibration.outside(described.features)
        if not together:
            own = [None] * len(queries) if thumbs is None else [one[None] for one in thumbs]
            return [Asked(*one) for one in zip(queries, own, outside.tolist(), strict=True)]
        if not len(queries):
            raise InputError("no image to search for; give one or more of one person")
        # The mean of |q - g|^2 over the queries q is |mean q - g|^2 plus a constant.
        several = queries if len(queries) > 1 else None
        return [Asked(queries.mean(axis=0), thumbs, bool(outside.all()), several)]

    def _allowed(self) -> Bools:
        """Return which rows the conditions leave."""
        table = self.view.table
        persons = self.view.persons if self.where.persons else table.persons
        mask = self.where.mask(table.cameras, table.times, persons)
        mask[[self.view.rows[sighting] for sighting in self.like]] = False
        return mask

    def _own_pictures(self, thumbs: NDArray[np.float32] | None, near: Found) -> Rows:
        """Return those of the nearest rows whose picture is one of the query's own."""
        rows, distances = near.rows[:_LOOKED], near.distances[:_LOOKED]
        if thumbs is None:
            return rows[distances <= _ZERO * float(np.median(distances))] if len(rows) else rows
        ids = self.view.table.ids[rows].tolist()
        images = self.engine.fetch(ids, "image")
        same = [key in images and crops.shows_one_of(images[key], thumbs) for key in ids]
        return rows[np.array(same, bool)]

    def _nearest_shared(self, queries: Floats32, depth: int, allowed: Bools) -> Steps[list[Found]]:
        """Find the nearest; with other searches, where a product can be shared."""
        index, some = self.view.index, None if allowed.all() else allowed
        if self.parts is not None or index is None or len(queries) > 1 or index.sparse(some):
            return self._nearest(queries, depth, allowed)
        pair = yield Shared(index.search_each, (queries[0], min(depth, len(allowed)), some))
        return [Found(*pair)]

    def _nearest(self, queries: Floats32, depth: int, allowed: Bools) -> list[Found]:
        depth, some = min(depth, len(allowed)), None if allowed.all() else allowed
        if self.parts is not None:
            found, missing = self.parts.nearest(self.view, queries, depth, some)
            self.missing.update(missing)
        elif self.view.index is not None:
            found = self.view.index.search(queries, depth, some)
        else:
            return [self._by_engine(query, depth, allowed) for query in queries]
        return [Found(*pair) for pair in found]

    def _by_engine(self, query: Floats32, k: int, allowed: Bools) -> Found:
        """Ask the engine for candidates and order them in float64."""
        now, rows_of = self.view.manifest.current, self.view.rows
        if self.where.persons:
            rows = np.flatnonzero(allowed)  # labels are ours, not the engine's
            vectors = self._embeddings(rows)
        else:
            exact, wanted = not now.indexed, _MORE * k + 1
            ids, vectors = self.engine.nearest(now.number, query, wanted, self.where, exact=exact)
            rows = np.array([rows_of.get(sighting, -1) for sighting in ids], np.intp)
            visible = (rows >= 0) & allowed[rows]
            rows, vectors = rows[visible], vectors[visible]
        if not len(rows):
            return Found(rows, np.empty(0))
        order = np.argsort(rows)  # equal distances keep the order of the table
        [(local, distances)] = ExactIndex(vectors[order]).search(query[None], k)
        return Found(rows[order][local], distances)

    def _tracks(self, query: Floats32, allowed: Bools, near: Found, depth: int) -> Found:
        """Return the nearest sighting of each of the k best tracks, with the mean distance of each.

        A track none of whose sightings is among the nearest (`near`, of `depth`) is farther in the
        mean than the last of these; the search goes deeper until that is farther than the k-th
        track.
        """
        while True:
            pooled = self._pooled(query, allowed, near.rows[allowed[near.rows]])
            if depth >= len(self.view.table) or len(near.rows) < depth:  # all were seen
                return pooled
            if len(pooled.rows) >= self.k and pooled.distances[self.k - 1] <= near.distances[-1]:
                return pooled
            depth *= _MORE
            [near] = self._nearest(query[None], depth, allowed)

    def _pooled(self, query: Floats32, allowed: Bools, near: Rows) -> Found:
        """Order the tracks of some rows by the mean over all their allowed sightings."""
        tracks = self.view.tracks
        asked = np.zeros(len(self.view.track_sizes), bool)
        asked[tracks[near]] = True
        rows = np.flatnonzero(asked[tracks] & allowed)
        distances = squared(self._embeddings(rows), query)
        order = np.argsort(distances, kind="stable")
        # The first of a track in the order of distance is its nearest sighting.
        _, first, codes = np.unique(tracks[rows][order], return_index=True, return_inverse=True)
        means = np.bincount(codes, distances[order]) / np.bincount(codes)
        best = np.lexsort((rows[order[first]], means))
        return Found(rows[order[first]][best], means[best])

    def _embeddings(self, rows: Any) -> Floats32:
        return embeddings_of(self.engine, self.view, rows)

    def _judged(self, one: Asked, found: Found, searched: Bools, own: Rows) -> Hits:
        """Say what a query found and how sure that is; `own` are the rows of its own pictures."""
        judged = judge(self.view, one, searched)
        hits = Hits(self._hits(found, self.k, judged, own))
        hits.presence = None if judged is None else judged.presence
        hits.note = "" if judged is not None else not_judged(self.view)
        hits.missing = "" if self.parts is None else self.parts.told(self.missing)
        hits.same_pictures = [hit for hit in hits if hit.same_picture]
        if len(own) and not self.same_pictures:
            apart = Found(own, squared(self._embeddings(own), one.embedding))
            hits.same_pictures = self._hits(apart, len(own), judged, own)
        return hits

    def _hits(self, found: Found, k: int, judged: Judgement | None, own: Rows) -> list[Hit]:
        view, table = self.view, self.view.table
        rows, distances = found.rows[:k], found.distances[:k]
        same, probabilities = np.isin(rows, own), np.full(len(rows), np.nan)
        if judged is not None:
            probabilities = np.where(same, np.nan, judged.probabilities[rows])
        units = view.units if judged is None else judged.units
        of_each: dict[str, NDArray[Any]] = {
            "id": table.ids[rows],
            "person": view.persons[rows],
            "camera": table.cameras[rows],
            "time": or_none(table.times[rows]),
            "source": table.sources[rows],
            "distance": distances / (1.0 if judged is None else judged.scale),
            "raw_distance": distances,
            "probability": or_none(probabilities),
            "rank_before": np.full(len(rows), None) if found.before is None else found.before[:k],
            "track": table.sequences[rows],
            "unit": units[rows].astype(str),
            "same_picture": same,
            "trained": view.learned_from[rows],
        }
        hits: list[Hit] = []
        for row in zip(*(column.tolist() for column in of_each.values()), strict=True):
            said = view.labels.verdict(self.like[0], row[0]) if self.like else None
            values = dict(zip(of_each, row, strict=True))
            hits.append(Hit(rank=len(hits) + 1, verdict=said, **values))
        return hits
