"""Re-ranking what a search found: post-processing that looks at the gallery, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.gallery.engines.base import Floats32

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Rerank = Literal["k-reciprocal", "cross-view"]

METHODS: tuple[Rerank, ...] = ("k-reciprocal", "cross-view")
CANDIDATES = 500  # first results of a query that are re-ranked; those after them keep their order
NOTE = (
    "post-processing that uses the gallery: results are not sorted by distance and "
    "not comparable with a plain search"
)


class Found(NamedTuple):
    """Rows of the table in the order in which they are shown.

    Attributes
    ----------
    rows : int array (n,)
    distances : float64 array (n,)
        The learned squared distances, whatever the order.
    before : int array (n,) or None
        Ranks from 1 before re-ranking; None if nothing was re-ranked.
    """

    rows: Rows
    distances: Floats
    before: Rows | None = None


def method_named(name: str) -> Rerank:
    """Return the method of that name."""
    for method in METHODS:
        if method == name:
            return method
    raise unknown_name("re-ranking", name, METHODS)


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
    method: Rerank, queries: Floats32, found: list[Found], embeddings_of: Callable[[Rows], Floats32]
) -> list[Found]:
    """Put the first `CANDIDATES` of each query in another order.

    Parameters
    ----------
    method : "k-reciprocal" | "cross-view"
        k-reciprocal encoding of each query with its own candidates, so that an answer does not
        depend on what else was asked; or mutual ranks across views, from the distances between
        all queries and all candidates.
    queries : float32 array (n_queries, r)
    found : list of Found
        Nearest first.
    embeddings_of : callable
        Rows of the table -> embeddings (n, r).

    References
    ----------
    See `resight.evaluation.reranking`.
    """
    heads = [one.rows[:CANDIDATES] for one in found]
    scores = (_encoded if method == "k-reciprocal" else _mutual)(queries, heads, embeddings_of)
    return [_reordered(one, score) for one, score in zip(found, scores, strict=True)]


def _encoded(
    queries: Floats32, heads: list[Rows], embeddings_of: Callable[[Rows], Floats32]
) -> list[Floats]:
    from resight.evaluation.reranking import k_reciprocal

    return [
        k_reciprocal(query[None], embeddings_of(rows))[0] if len(rows) else np.empty(0)
        for query, rows in zip(queries, heads, strict=True)
    ]


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


def _reordered(found: Found, score: Floats) -> Found:
    order = np.arange(len(found.rows))
    order[: len(score)] = np.argsort(score, kind="stable")  # equal scores keep the plain order
    return Found(found.rows[order], found.distances[order], order + 1)
