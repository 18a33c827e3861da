"""From distances between sightings to scores between people (multi-shot)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.datasets.sightings import UNKNOWN_PERSON
from resight.errors import InputError, unknown_name

SCORING_RULES = ("single", "sum", "min", "mean")


class PersonScores(NamedTuple):
    """Scores between groups of sightings."""

    distances: NDArray[np.float64]  # (n_query_groups, n_gallery_groups)
    query_persons: NDArray[Any]
    gallery_persons: NDArray[Any]
    query_rows: NDArray[np.intp]  # the first sighting of each group, to show it
    gallery_rows: NDArray[np.intp]


def person_scores(
    distances: ArrayLike, query_persons: ArrayLike, gallery_persons: ArrayLike, rule: str
) -> PersonScores:
    """Turn distances between sightings into what is ranked.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_gallery)
    query_persons, gallery_persons : array-like of shape (n_queries,), (n_gallery,)
        Whom each sighting shows. Sightings of unknown people (empty text) are never grouped.
    rule : {"single", "sum", "min", "mean"}
        "single": every sighting stands for itself. Otherwise a person's query sightings are
        compared with a person's gallery sightings by the sum (the k-XQDA paper's multi-shot
        rule), the minimum or the mean of all their distances.

    Returns
    -------
    PersonScores
        Groups in the order of their first sighting.

    Notes
    -----
    A sum over more gallery sightings is larger whoever they show, so "sum" is refused when
    gallery people have different numbers of sightings; there "mean" says what is meant.

    Examples
    --------
    >>> scores = person_scores([[1, 3, 5], [2, 4, 6]], ["a", "a"], ["a", "a", "b"], "mean")
    >>> scores.distances.tolist(), scores.gallery_persons.tolist()
    ([[2.5, 5.5]], ['a', 'b'])
    """
    if rule not in SCORING_RULES:
        raise unknown_name("scoring rule", rule, SCORING_RULES)
    D = np.asarray(distances, float)
    queries, gallery = np.asarray(query_persons), np.asarray(gallery_persons)
    if D.shape != (len(queries), len(gallery)):
        raise InputError(
            f"distances of shape {D.shape} for {len(queries)} query and {len(gallery)} gallery "
            "sightings; give one row per query and one column per gallery sighting"
        )
    if rule == "single":
        return PersonScores(D, queries, gallery, np.arange(len(queries)), np.arange(len(gallery)))
    (order, starts), (gallery_order, gallery_starts) = _grouped(queries), _grouped(gallery)
    rows, gallery_rows = order[starts], gallery_order[gallery_starts]
    sizes = np.diff(gallery_starts, append=len(gallery))
    if rule == "sum" and sizes.min() < sizes.max():
        few, many = (gallery[gallery_rows[pick]] for pick in (sizes.argmin(), sizes.argmax()))
        raise InputError(
            "the rule 'sum' needs the same number of gallery sightings for everyone, but "
            f"{few!s} has {sizes.min()} and {many!s} has {sizes.max()}; use 'mean' or 'min'"
        )
    combine = np.minimum if rule == "min" else np.add
    pooled = combine.reduceat(D[np.ix_(order, gallery_order)], starts, axis=0)
    pooled = combine.reduceat(pooled, gallery_starts, axis=1)
    if rule == "mean":
        pooled = pooled / np.outer(np.diff(starts, append=len(queries)), sizes)
    return PersonScores(pooled, queries[rows], gallery[gallery_rows], rows, gallery_rows)


def _grouped(persons: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows so ordered that each person's are together, and where each person starts."""
    _, first, codes = np.unique(persons, return_index=True, return_inverse=True)
    leader = first[codes]  # every sighting is led by the first one of its person ...
    if persons.dtype.kind == "U":
        unknown = persons == UNKNOWN_PERSON
        leader = np.where(unknown, np.arange(len(persons)), leader)  # ... but strangers by none
    order = np.argsort(leader, kind="stable")
    return order, np.flatnonzero(np.diff(leader[order], prepend=-1))
