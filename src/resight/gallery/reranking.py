"""Re-ranking what a search found: post-processing that looks at the gallery, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.gallery.engines.base import Floats32
from resight.gallery.index import Floats, Rows

Rerank = Literal["k-reciprocal", "cross-view", "ol-mans"]

METHODS: tuple[Rerank, ...] = get_args(Rerank)
CANDIDATES = 500  # first results of a query that are re-ranked; those after them keep their order
_LABELLED = 2000  # labelled sightings that ol-mans looks at, at most
NOTE = (
    "post-processing that uses the gallery: results are not sorted by distance and "
    "not comparable with a plain search"
)


class Found(NamedTuple):
    """Rows of the table in the order in which they are shown."""

    rows: Rows  # (n,)
    distances: Floats  # (n,), the learned squared distances, whatever the order
    before: Rows | None = None  # (n,), ranks from 1 before re-ranking, if there was any


def check(method: Rerank, n_queries: int, by_track: bool) -> None:
    """Refuse an unknown method, and a single query where queries are compared with each other."""
    if method not in METHODS:
        raise unknown_name("re-ranking", method, METHODS)
    if by_track:
        raise InputError("re-ranking orders sightings, not tracks; leave one of the two out")
    if method == "cross-view" and n_queries < 2:
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
    depend on what else was asked: k-reciprocal encoding, or a local metric that pushes labelled
    sightings of other people away from the query (ol-mans). See `reranking` and
    `supervised_reranking` of `resight.evaluation`.
    """
    from resight.evaluation.pairwise import EmbeddedPoints
    from resight.evaluation.reranking import cross_view_reciprocal, k_reciprocal
    from resight.learners._base import squared_euclidean

    union = np.unique(np.concatenate([one.rows[:CANDIDATES] for one in found]))
    if not len(union):
        return found
    Q, G = queries.astype(np.float64), embeddings_of(union).astype(np.float64)
    places = [np.searchsorted(union, one.rows[:CANDIDATES]) for one in found]  # of each query in G
    if method == "cross-view":
        mutual = cross_view_reciprocal(squared_euclidean(Q, G))  # (n_queries, n_union)
        scores = [row[own] for row, own in zip(mutual, places, strict=True)]
    else:
        score = lambda q, own: k_reciprocal(EmbeddedPoints(q, own))[0]  # noqa: E731
        if method == "ol-mans":
            score = _locally(embeddings_of, persons)
        pairs = zip(Q[:, None], places, strict=True)
        scores = [score(q, G[own]) if len(own) else np.empty(0) for q, own in pairs]
    return [_reordered(one, values) for one, values in zip(found, scores, strict=True)]


def _locally(
    embeddings_of: Callable[[Rows], Floats32], persons: NDArray[np.str_]
) -> Callable[[Floats, Floats], Floats]:
    """Return what scores the candidates of a query by means of labelled sightings."""
    from resight.evaluation.pairwise import EmbeddedPoints
    from resight.evaluation.supervised_reranking import adapt_locally
    from resight.learners._base import squared_euclidean

    labelled = np.flatnonzero(persons != "")
    labelled = labelled[:: len(labelled) // _LABELLED + 1]
    who = persons[labelled]
    if len(np.unique(who)) < 3:
        raise InputError(
            "ol-mans re-ranking learns from labelled people, of whom the gallery has fewer than "
            "three; label some, or use k-reciprocal"
        )
    known = embeddings_of(labelled).astype(np.float64)

    def score(query: Floats, candidates: Floats) -> Floats:
        # The nearest labelled person may be the one who is asked for: no negative.
        negatives = known[who != who[squared_euclidean(query, known)[0].argmin()]]
        asked = squared_euclidean(query, np.concatenate([candidates, negatives]))
        return adapt_locally(asked, EmbeddedPoints(candidates, negatives))[0]

    return score


def _reordered(found: Found, score: Floats) -> Found:
    order = np.arange(len(found.rows))
    order[: len(score)] = np.argsort(score, kind="stable")  # equal scores keep the plain order
    return Found(found.rows[order], found.distances[order], order + 1)
