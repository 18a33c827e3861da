"""Re-ranking what a search found: post-processing that looks at the gallery, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.gallery.engines.base import Floats32

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Rerank = Literal["k-reciprocal", "cross-view", "ssm", "ol-mans"]

METHODS: tuple[Rerank, ...] = get_args(Rerank)
CANDIDATES = 500  # first results of a query that are re-ranked; those after them keep their order
_LABELLED = 2000  # labelled sightings that ssm and ol-mans look at, at most
NOTE = (
    "post-processing that uses the gallery: results are not sorted by distance and "
    "not comparable with a plain search"
)


class Found(NamedTuple):
    """Rows of the table in the order in which they are shown."""

    rows: Rows  # (n,)
    distances: Floats  # (n,), the learned squared distances, whatever the order
    before: Rows | None = None  # (n,), ranks from 1 before re-ranking, if there was any


def method_named(name: str) -> Rerank:
    """Return the method of that name."""
    if name not in METHODS:
        raise unknown_name("re-ranking", name, METHODS)
    return name


def check(method: Rerank, n_queries: int, by_track: bool = False) -> None:
    """Refuse an unknown method, and a single query where queries are compared with each other."""
    if by_track:
        raise InputError("re-ranking orders sightings, not tracks; leave one of the two out")
    if method_named(method) == "cross-view" and n_queries < 2:
        raise InputError(
            "cross-view re-ranking compares the queries with each other: with one query it "
            "changes nothing. Search for two or more images at once, or use k-reciprocal"
        )


def rerank(
    method: Rerank,
    queries: Floats32,
    found: list[Found],
    embeddings_of: Callable[[Rows], Floats32],
    persons: NDArray[np.str_],
) -> list[Found]:
    """Put the first `CANDIDATES` of each query (n_queries, r) in another order.

    "cross-view" takes mutual ranks across views, from the distances between all queries and all
    candidates. The others take each query with its own candidates, so that an answer does not
    depend on what else was asked: k-reciprocal encoding, affinities smoothed over candidates and
    labelled sightings (ssm), or a local metric that pushes labelled sightings of other people away
    from the query (ol-mans). See `reranking`, `smoothed_manifold` and `local_metrics` of
    `resight.evaluation`.
    """
    from resight.evaluation.pairwise import EmbeddedPoints
    from resight.evaluation.reranking import k_reciprocal

    heads = [one.rows[:CANDIDATES] for one in found]
    if method == "cross-view":
        scores = _mutual(queries, heads, embeddings_of)
    else:
        score: Callable[[Floats32, Rows], Floats]
        if method == "k-reciprocal":
            score = lambda query, rows: k_reciprocal(  # noqa: E731
                EmbeddedPoints(query[None], embeddings_of(rows))
            )[0]
        else:
            score = _supervised(method, embeddings_of, persons)
        pairs = zip(queries, heads, strict=True)
        scores = [score(query, rows) if len(rows) else np.empty(0) for query, rows in pairs]
    return [_reordered(one, values) for one, values in zip(found, scores, strict=True)]


def _mutual(
    queries: Floats32, heads: list[Rows], embeddings_of: Callable[[Rows], Floats32]
) -> list[Floats]:
    from resight.evaluation.reranking import cross_view_reciprocal
    from resight.learners._base import squared_euclidean

    union = np.unique(np.concatenate(heads))
    if not len(union):
        return [np.empty(0) for _ in heads]
    gallery = embeddings_of(union).astype(np.float64)
    D = squared_euclidean(queries.astype(np.float64), gallery)  # (n_queries, n_union)
    places = cross_view_reciprocal(D)
    return [row[np.searchsorted(union, rows)] for row, rows in zip(places, heads, strict=True)]


def _supervised(
    method: Rerank, embeddings_of: Callable[[Rows], Floats32], persons: NDArray[np.str_]
) -> Callable[[Floats32, Rows], Floats]:
    """Return what scores the candidates of a query by means of labelled sightings."""
    from resight.evaluation.local_metrics import adapt_locally
    from resight.evaluation.pairwise import EmbeddedPoints
    from resight.evaluation.smoothed_manifold import smoothed_manifold
    from resight.learners._base import squared_euclidean

    labelled = np.flatnonzero(persons != "")
    labelled = labelled[:: len(labelled) // _LABELLED + 1]
    if len(np.unique(persons[labelled])) < 3:
        raise InputError(
            f"{method} re-ranking learns from labelled people, of whom the gallery has fewer than "
            "three; label some, or use k-reciprocal"
        )
    known = embeddings_of(labelled).astype(np.float64)

    def score(query: Floats32, rows: Rows) -> Floats:
        asked, found = query.astype(np.float64)[None], embeddings_of(rows).astype(np.float64)
        others = ~np.isin(labelled, rows)
        if method == "ol-mans" or not others.any():
            # The nearest labelled person may be the one who is asked for: no negative.
            near = squared_euclidean(asked, known)[0]
            others = persons[labelled] != persons[labelled][near.argmin()]
        T, who = known[others], persons[labelled][others]
        D = squared_euclidean(asked, np.concatenate([found, T]))  # (1, n_found + n_labelled)
        points = EmbeddedPoints(found, T)
        ranked = smoothed_manifold(D, points, who) if method == "ssm" else adapt_locally(D, points)
        return ranked[0]

    return score


def _reordered(found: Found, score: Floats) -> Found:
    order = np.arange(len(found.rows))
    order[: len(score)] = np.argsort(score, kind="stable")  # equal scores keep the plain order
    return Found(found.rows[order], found.distances[order], order + 1)
