"""From query embeddings to hits: exact in memory, or candidates from the engine scored again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.gallery.confidence import Judgement, Presence, judge, not_judged, trained
from resight.gallery.engines.base import Engine, Floats32
from resight.gallery.filters import Filter
from resight.gallery.index import ExactIndex
from resight.gallery.labels import Verdict
from resight.gallery.reranking import CANDIDATES, Found, Rerank, check, rerank
from resight.gallery.same_pictures import LOOKED, Asked, own_pictures, without
from resight.gallery.view import View, features_of

Bools = NDArray[np.bool_]
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
    same_pictures : list of Hit
        Stored pictures that are the query's own; left out of the ranking unless asked for.
    """

    presence: Presence | None = None
    note: str = ""

    def __init__(self, hits: Iterable[Hit] = ()) -> None:
        super().__init__(hits)
        self.same_pictures: list[Hit] = []


def search_view(
    engine: Engine,
    view: View,
    queries: Floats32,
    k: int,
    where: Filter,
    like: Sequence[str] = (),
    method: Rerank | None = None,
    by_track: bool = False,
    *,
    asked: Sequence[Asked] | None = None,
    same_pictures: bool = False,
) -> list[Hits]:
    """Return the k best hits of each query; `like` are the stored sightings that it comes from.

    With a `method` the first candidates of each query are re-ranked (see `reranking`). With
    `by_track` a track is one hit: its distance is the mean over its sightings, the nearest of which
    stands for it. What is known of each query besides its embedding is `asked`; stored pictures
    that are a query's own are left out of its ranking unless `same_pictures`.
    """
    if method is not None:
        check(method, len(queries), by_track)
    given = _allowed(view, where, like)
    if not len(view.table):
        return [Hits() for _ in queries]

    def nearest(some: Floats32, depth: int, allowed: Bools | None = given) -> list[Found]:
        depth = min(depth, len(view.table))
        if view.index is not None:
            return [Found(*pair) for pair in view.index.search(some, depth, allowed)]
        return [_by_engine(engine, view, query, depth, where, allowed) for query in some]

    known = asked if asked is not None else [Asked()] * len(queries)
    first = nearest(queries, max(k, LOOKED) if method is None else max(k, LOOKED, CANDIDATES))
    near = [Found(one.rows[:LOOKED], one.distances[:LOOKED]) for one in first]
    pairs = zip(known, near, strict=True)
    copies = [own_pictures(engine, view, one, some) for one, some in pairs]
    masks = [given if same_pictures else without(given, rows, view) for rows in copies]
    found = []
    for query, before, mask in zip(queries, first, masks, strict=True):
        if by_track:
            found.append(_tracks(engine, view, query, k, mask, partial(nearest, allowed=mask)))
        else:
            again = mask is not given
            found.append(
                nearest(query[None], max(k, len(before.rows)), mask)[0] if again else before
            )
    if method is not None:
        found = rerank(
            method, queries, found, lambda rows: _embeddings(engine, view, rows), view.persons
        )
    results = []
    for query, one, order, mask, rows in zip(queries, known, found, masks, copies, strict=True):
        searched = np.ones(len(view.table), bool) if mask is None else mask
        judged = judge(view, query, searched, one.outside, one.several)
        hits = _hits(view, order, k, like, judged, rows)
        if len(rows) and not same_pictures:
            own = Found(rows, _squared(_embeddings(engine, view, rows), query))
            hits.same_pictures = _hits(view, own, len(rows), like, judged, rows)
        else:
            hits.same_pictures = [hit for hit in hits if hit.same_picture]
        results.append(hits)
    return results


def _tracks(
    engine: Engine,
    view: View,
    query: Floats32,
    k: int,
    allowed: NDArray[np.bool_] | None,
    nearest: Callable[[Floats32, int], list[Found]],
) -> Found:
    """Return the nearest sighting of each of the k best tracks, with the mean distance of each.

    A track none of whose sightings is among the nearest is farther in the mean than the last of
    these; the search goes deeper until that is farther than the k-th track.
    """
    depth = _MORE * k
    while True:
        [near] = nearest(query[None], depth)
        pooled = _pooled(engine, view, query, allowed, near.rows)
        all_seen = len(near.rows) < min(depth, len(view.table)) or depth >= len(view.table)
        if all_seen or (len(pooled.rows) >= k and pooled.distances[k - 1] <= near.distances[-1]):
            return pooled
        depth *= _MORE


def _pooled(
    engine: Engine,
    view: View,
    query: Floats32,
    allowed: NDArray[np.bool_] | None,
    near: NDArray[np.intp],
) -> Found:
    """Order the tracks that some rows belong to by the mean over all their allowed sightings."""
    members = np.isin(view.tracks, view.tracks[near])
    rows = np.flatnonzero(members if allowed is None else members & allowed)
    distances = _squared(_embeddings(engine, view, rows), query)
    order = np.argsort(distances, kind="stable")
    # The first of a track in the order of distance is its nearest sighting.
    _, first, codes = np.unique(view.tracks[rows][order], return_index=True, return_inverse=True)
    means = np.bincount(codes, distances[order]) / np.bincount(codes)
    best = np.lexsort((rows[order[first]], means))
    return Found(rows[order[first]][best], means[best])


def _embeddings(engine: Engine, view: View, rows: NDArray[np.intp]) -> Floats32:
    """Return embeddings of some rows of the table, (len(rows), r)."""
    if view.index is not None:
        return view.index.embeddings[rows]
    ids = view.table.ids[rows].tolist()
    found = features_of(engine, view.manifest, view.model, ids)
    return np.asarray(view.model.embed(np.array([found[key] for key in ids])), np.float32)


def _allowed(view: View, where: Filter, like: Sequence[str]) -> NDArray[np.bool_] | None:
    if not where and not like:
        return None
    persons = view.persons if where.persons else view.table.persons
    mask = where.mask(view.table.cameras, view.table.times, persons)
    mask[[view.rows[sighting] for sighting in like]] = False
    return mask


def _by_engine(
    engine: Engine,
    view: View,
    query: Floats32,
    k: int,
    where: Filter,
    allowed: NDArray[np.bool_] | None,
) -> Found:
    """Ask the engine for candidates and order them in float64."""
    generation = view.manifest.current
    if where.persons and allowed is not None:
        rows = np.flatnonzero(allowed)  # labels are ours, not the engine's: embedded on the spot
        vectors = _embeddings(engine, view, rows)
    else:
        exact = not generation.indexed
        ids, vectors = engine.nearest(generation.number, query, _MORE * k + 1, where, exact=exact)
        rows = np.array([view.rows.get(sighting, -1) for sighting in ids], np.intp)
        visible = rows >= 0
        if allowed is not None:
            visible &= allowed[rows]
        rows, vectors = rows[visible], vectors[visible]
    if not len(rows):
        return Found(rows, np.empty(0))
    order = np.argsort(rows)  # equal distances keep the order of the table
    [(local, distances)] = ExactIndex(vectors[order]).search(query[None], k)
    return Found(rows[order][local], distances)


def _squared(embeddings: Floats32, query: Floats32) -> NDArray[np.float64]:
    difference = embeddings.astype(np.float64) - query.astype(np.float64)
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", difference, difference)
    return squares


def _hits(
    view: View,
    found: Found,
    k: int,
    like: Sequence[str],
    judged: Judgement | None,
    copies: NDArray[np.intp],
) -> Hits:
    rows, distances = found.rows[:k], found.distances[:k]
    probabilities: Any = np.full(len(rows), np.nan)
    if judged is not None:
        probabilities = judged.probabilities[rows]
    elif len(rows) and not hasattr(view.model, "calibration"):  # a model with its own idea of it
        probabilities = view.model.probability(distances)
    units = view.units if judged is None else judged.units
    learned, own = trained(view), set(copies.tolist())
    hits = Hits()
    hits.presence = None if judged is None else judged.presence
    hits.note = "" if judged is not None else not_judged(view)
    for place, (row, distance) in enumerate(zip(rows.tolist(), distances.tolist(), strict=True)):
        time = float(view.table.times[row])
        sighting, p = str(view.table.ids[row]), float(probabilities[place])
        hits.append(
            Hit(
                rank=place + 1,
                id=sighting,
                person=view.labels.person(sighting),
                camera=str(view.table.cameras[row]),
                time=None if np.isnan(time) else time,
                source=str(view.table.sources[row]),
                distance=distance if judged is None else distance / judged.scale,
                raw_distance=distance,
                probability=None if np.isnan(p) or row in own else p,
                verdict=view.labels.verdict(like[0], sighting) if like else None,
                rank_before=None if found.before is None else int(found.before[place]),
                track=str(view.table.sequences[row]),
                unit=f"{units[row]}",
                same_picture=row in own,
                trained=bool(learned[row]),
            )
        )
    return hits
