"""The one number behind ``score``: rank 1 across cameras."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError


def cross_camera_rank1(
    distances: ArrayLike, persons: ArrayLike, cameras: ArrayLike | None = None
) -> float:
    """Rank 1 of finding each person again in another camera, as a fraction.

    Every camera in turn asks every other camera. In one such direction the queries are the
    sightings whose person the other camera has seen too, and the result is the mean over all
    directions that have a query: each direction counts the same, however many sightings it has.
    Without cameras each sighting is looked for among all the others. A query is a hit when the
    nearest sighting of its person is strictly nearer than every other person: ties never flatter.

    >>> cross_camera_rank1([[0, 3, 1, 2], [3, 0, 5, 4], [1, 5, 0, 3], [2, 4, 3, 0]],
    ...                    ["ann", "bob", "ann", "bob"], ["A", "A", "B", "B"])
    0.75
    """
    D, who = np.asarray(distances, float), np.asarray(persons)
    where = None if cameras is None else np.asarray(cameras)
    if who.ndim != 1 or D.shape != (len(who), len(who)):
        raise InputError(
            f"distances of shape {D.shape} for persons of shape {who.shape}; "
            "give a square matrix with one row, one column and one person for each sighting"
        )
    if not np.isfinite(D).all():
        raise InputError(
            "distances hold NaN or infinite values; check the features the learner was given"
        )
    same = who[:, None] == who[None, :]  # (n, n)
    if where is None:
        rates = [_rank1(D, same & ~np.eye(len(who), dtype=bool), ~same)]
    else:
        views = [np.flatnonzero(where == camera) for camera in np.unique(where)]
        rates = [
            _rank1(D[np.ix_(a, b)], same[np.ix_(a, b)], ~same[np.ix_(a, b)])
            for a, b in permutations(views, 2)
        ]
    answered = [rate for rate in rates if rate is not None]
    if not answered:
        raise InputError(
            f"none of the {len(who)} sightings has a match: rank 1 needs at least one person "
            + ("with two sightings" if where is None else "seen by two different cameras")
            + "; check that persons (and cameras) belong to these rows"
        )
    return float(np.mean(answered))


def _rank1(
    D: NDArray[np.float64], right: NDArray[np.bool_], wrong: NDArray[np.bool_]
) -> float | None:
    """Fraction of rows whose nearest `right` is strictly nearer than the nearest `wrong`."""
    queries = right.any(axis=1)
    if not queries.any():
        return None
    nearest_right = np.where(right, D, np.inf).min(axis=1)
    nearest_wrong = np.where(wrong, D, np.inf).min(axis=1)
    return float(np.mean((nearest_right < nearest_wrong)[queries]))
