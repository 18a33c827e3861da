"""From query embeddings to hits: exact in memory, or candidates from the engine scored again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.gallery import crops
from resight.gallery.confidence import Judgement, Presence, judge, not_judged, trained
from resight.gallery.engines.base import Engine, Floats32
from resight.gallery.filters import Filter
from resight.gallery.index import ExactIndex
from resight.gallery.labels import Verdict
from resight.gallery.parts import Parts
from resight.gallery.reranking import CANDIDATES, Found, Rerank, check, rerank
from resight.gallery.view import View, features_of

Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]
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
    same_pictures : list of Hit
        Stored pictures that are the query's own; left out of the ranking unless asked for.
    """

    presence: Presence | None = None
    note: str = ""
    missing: str = ""

    def __init__(self, hits: Iterable[Hit] = ()) -> None:
        super().__init__(hits)
        self.same_pictures: list[Hit] = []


@dataclass(frozen=True)
class Asked:
    """What is known of a query besides its embedding.

    `thumbs` are its pictures, small, (n, h, w, 3); `outside` tells whether it looks like nothing
    that the model learned from; `several` are the embeddings (n, r) of a query's several pictures.
    """

    thumbs: NDArray[np.float32] | None = None
    outside: bool = False
    several: Floats32 | None = None


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
    missing: set[int] = field(default_factory=set)  # parts that gave no answer

    def run(self, queries: Floats32, asked: Sequence[Asked]) -> list[Hits]:
        """Return the k best hits of each query, of which `asked` says what else is known."""
        if self.rerank is not None:
            check(self.rerank, len(queries), self.by_track)
        given = self._allowed()
        if not len(self.view.table):
            return [Hits() for _ in queries]
        depth = max(self.k, _LOOKED, 0 if self.rerank is None else CANDIDATES)
        depth = max(depth, _MORE * self.k) if self.by_track else depth
        found, masks, copies = [], [], []
        for query, one, near in zip(
            queries, asked, self._nearest(queries, depth, given), strict=True
        ):
            own = self._own_pictures(one.thumbs, near)
            mask = given
            if len(own) and not self.same_pictures:
                mask = np.ones(len(self.view.table), bool) if given is None else given.copy()
                mask[own] = False
            copies.append(own)
            masks.append(mask)
            if self.by_track:
                near = self._tracks(query, mask, near, depth)
            elif mask is not given:
                [near] = self._nearest(query[None], max(self.k, len(near.rows)), mask)
            found.append(near)
        if self.rerank is not None:
            found = rerank(self.rerank, queries, found, self._embeddings, self.view.persons)
        results = []
        for query, one, order, mask, own in zip(queries, asked, found, masks, copies, strict=True):
            searched = np.ones(len(self.view.table), bool) if mask is None else mask
            judged = judge(self.view, query, searched, one.outside, one.several)
            hits = self._hits(order, self.k, judged, own)
            hits.same_pictures = [hit for hit in hits if hit.same_picture]
            if len(own) and not self.same_pictures:
                apart = Found(own, _squared(self._embeddings(own), query))
                hits.same_pictures = self._hits(apart, len(own), judged, own)
            hits.missing = "" if self.parts is None else self.parts.told(self.missing)
            results.append(hits)
        return results

    def _allowed(self) -> Bools | None:
        """Return which rows the conditions leave, None for all."""
        if not self.where and not self.like:
            return None
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

    def _nearest(self, queries: Floats32, depth: int, allowed: Bools | None) -> list[Found]:
        depth = min(depth, len(self.view.table))
        if self.parts is not None:
            found, missing = self.parts.nearest(self.view, queries, depth, allowed)
            self.missing.update(missing)
            return [Found(*pair) for pair in found]
        if self.view.index is not None:
            return [Found(*pair) for pair in self.view.index.search(queries, depth, allowed)]
        return [self._by_engine(query, depth, allowed) for query in queries]

    def _by_engine(self, query: Floats32, k: int, allowed: Bools | None) -> Found:
        """Ask the engine for candidates and order them in float64."""
        generation, rows_of = self.view.manifest.current, self.view.rows
        if self.where.persons and allowed is not None:
            rows = np.flatnonzero(allowed)  # labels are ours, not the engine's: embedded here
            vectors = self._embeddings(rows)
        else:
            exact, wanted = not generation.indexed, _MORE * k + 1
            ids, vectors = self.engine.nearest(
                generation.number, query, wanted, self.where, exact=exact
            )
            rows = np.array([rows_of.get(sighting, -1) for sighting in ids], np.intp)
            visible = rows >= 0
            if allowed is not None:
                visible &= allowed[rows]
            rows, vectors = rows[visible], vectors[visible]
        if not len(rows):
            return Found(rows, np.empty(0))
        order = np.argsort(rows)  # equal distances keep the order of the table
        [(local, distances)] = ExactIndex(vectors[order]).search(query[None], k)
        return Found(rows[order][local], distances)

    def _tracks(self, query: Floats32, allowed: Bools | None, near: Found, depth: int) -> Found:
        """Return the nearest sighting of each of the k best tracks, with the mean distance of each.

        A track none of whose sightings is among the nearest (`near`, of `depth`) is farther in the
        mean than the last of these; the search goes deeper until that is farther than the k-th
        track.
        """
        while True:
            seen = near.rows if allowed is None else near.rows[allowed[near.rows]]
            pooled = self._pooled(query, allowed, seen)
            if depth >= len(self.view.table) or len(near.rows) < depth:  # all were seen
                return pooled
            enough = len(pooled.rows) >= self.k
            if enough and pooled.distances[self.k - 1] <= near.distances[-1]:
                return pooled
            depth *= _MORE
            [near] = self._nearest(query[None], depth, allowed)

    def _pooled(self, query: Floats32, allowed: Bools | None, near: Rows) -> Found:
        """Order the tracks of some rows by the mean over all their allowed sightings."""
        tracks = self.view.tracks
        asked = np.zeros(len(self.view.track_sizes), bool)
        asked[tracks[near]] = True
        members = asked[tracks]
        rows = np.flatnonzero(members if allowed is None else members & allowed)
        distances = _squared(self._embeddings(rows), query)
        order = np.argsort(distances, kind="stable")
        # The first of a track in the order of distance is its nearest sighting.
        _, first, codes = np.unique(tracks[rows][order], return_index=True, return_inverse=True)
        means = np.bincount(codes, distances[order]) / np.bincount(codes)
        best = np.lexsort((rows[order[first]], means))
        return Found(rows[order[first]][best], means[best])

    def _embeddings(self, rows: Rows) -> Floats32:
        """Return embeddings of some rows of the table, (len(rows), r)."""
        view = self.view
        if view.index is not None:
            return view.index.embeddings[rows]
        ids = view.table.ids[rows].tolist()
        found = features_of(self.engine, view.manifest, view.model, ids)
        return np.asarray(view.model.embed(np.array([found[key] for key in ids])), np.float32)

    def _hits(self, found: Found, k: int, judged: Judgement | None, copies: Rows) -> Hits:
        view, table = self.view, self.view.table
        rows, distances = found.rows[:k], found.distances[:k]
        probabilities: Any = np.full(len(rows), np.nan)
        if judged is not None:
            probabilities = judged.probabilities[rows]
        elif len(rows) and not hasattr(
            view.model, "calibration"
        ):  # a model with its own idea of it
            probabilities = view.model.probability(distances)
        units = view.units if judged is None else judged.units
        learned, own = trained(view), set(copies.tolist())
        hits = Hits()
        hits.presence = None if judged is None else judged.presence
        hits.note = "" if judged is not None else not_judged(view)
        for place, (row, distance) in enumerate(
            zip(rows.tolist(), distances.tolist(), strict=True)
        ):
            time = float(table.times[row])
            sighting, p = str(table.ids[row]), float(probabilities[place])
            hits.append(
                Hit(
                    rank=place + 1,
                    id=sighting,
                    person=view.labels.person(sighting),
                    camera=str(table.cameras[row]),
                    time=None if np.isnan(time) else time,
                    source=str(table.sources[row]),
                    distance=distance if judged is None else distance / judged.scale,
                    raw_distance=distance,
                    probability=None if np.isnan(p) or row in own else p,
                    verdict=view.labels.verdict(self.like[0], sighting) if self.like else None,
                    rank_before=None if found.before is None else int(found.before[place]),
                    track=str(table.sequences[row]),
                    unit=f"{units[row]}",
                    same_picture=row in own,
                    trained=bool(learned[row]),
                )
            )
        return hits


def _squared(embeddings: Floats32, query: Floats32) -> NDArray[np.float64]:
    difference = embeddings.astype(np.float64) - query.astype(np.float64)
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", difference, difference)
    return squares
