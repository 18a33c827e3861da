"""Squared distances among all points [queries; gallery], some at a time; nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

Floats = NDArray[np.float64]
_PAIRS_AT_ONCE = 200_000
_ELEMENTS_AT_ONCE = 4_000_000


class EmbeddedPoints:
    """Points given by their embeddings: no matrix of all pairs is ever formed."""

    def __init__(self, queries: ArrayLike, gallery: ArrayLike) -> None:
        Q, G = (np.asarray(part, float) for part in (queries, gallery))
        if Q.ndim != 2 or G.ndim != 2 or Q.shape[1] != G.shape[1] or not len(Q) or not len(G):
            raise InputError(
                f"embeddings of shapes {Q.shape} and {G.shape}; give (n_queries, d) and "
                "(n_gallery, d) with the same d and at least one row each"
            )
        self.E = np.concatenate([Q, G])  # (n_points, d)
        require_finite(self.E, "embeddings")
        self.n_queries, self.n_points = len(Q), len(self.E)
        self.squares = np.einsum("ij,ij->i", self.E, self.E)

    def rows(self, start: int, stop: int) -> Floats:
        """Squared Euclidean distances of some points to all points."""
        D = self.E[start:stop] @ self.E.T
        D *= -2.0
        D += self.squares[start:stop, None]
        D += self.squares[None, :]
        return np.maximum(D, 0.0, out=D)

    def pairs(self, i: NDArray[Any], j: NDArray[Any]) -> Floats:
        """Squared Euclidean distances of listed pairs."""
        D = np.empty(len(i))
        for start in range(0, len(i), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            difference = self.E[i[part]] - self.E[j[part]]
            D[part] = np.einsum("ij,ij->i", difference, difference)
        return D


class MeasuredPoints:
    """Points given by the matrix of their distances, (n_points, n_points), symmetric."""

    def __init__(self, distances: ArrayLike, n_queries: int) -> None:
        self.D = np.asarray(distances, float)
        n = len(self.D)
        if self.D.shape != (n, n) or not 0 < n_queries < n:
            raise InputError(
                f"distances of shape {self.D.shape} with {n_queries} queries; give a square matrix "
                "of all queries and gallery sightings, with at least one of each"
            )
        require_finite(self.D, "distances")
        if self.D.min() < 0.0:
            raise InputError(
                f"the smallest distance is {self.D.min():.3g}; re-ranking needs non-negative "
                "distances: use a learner with transform, or cross_view_reciprocal"
            )
        self.n_queries, self.n_points = n_queries, n

    def rows(self, start: int, stop: int) -> Floats:
        """Rows of the matrix, to be overwritten."""
        return self.D[start:stop].copy()

    def pairs(self, i: NDArray[Any], j: NDArray[Any]) -> Floats:
        """Entries of the matrix."""
        return np.asarray(self.D[i, j])


Pairwise = EmbeddedPoints | MeasuredPoints


def nearest(points: Pairwise, k: int) -> tuple[NDArray[np.int32], Floats]:
    """Find the k nearest of every point, itself first, then by distance and by number.

    Also returns the largest distance of each point (1 where all are 0).
    """
    n = points.n_points
    k = min(k, n)
    neighbours, scale = np.empty((n, k), np.int32), np.empty(n)
    step = max(1, _ELEMENTS_AT_ONCE // n)
    for start in range(0, n, step):
        stop = min(start + step, n)
        D = points.rows(start, stop)
        scale[start:stop] = D.max(axis=1)
        D[np.arange(stop - start), np.arange(start, stop)] = -1.0
        neighbours[start:stop] = _smallest(D, k)
    return neighbours, np.where(scale > 0.0, scale, 1.0)


def _smallest(D: Floats, k: int) -> NDArray[np.intp]:
    """Columns of the k smallest entries of each row, ordered by value and then by column."""
    if k == D.shape[1]:
        return np.argsort(D, axis=1, kind="stable")
    columns = np.sort(np.argpartition(D, k, axis=1)[:, : k + 1], axis=1)
    values = np.take_along_axis(D, columns, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    chosen: NDArray[np.intp] = np.take_along_axis(columns, order, axis=1)
    ranked = np.take_along_axis(values, order, axis=1)
    # The partition picks any of equal values: where the border runs through a tie, sort in full.
    tied = np.flatnonzero(ranked[:, k - 1] == ranked[:, k])
    chosen = chosen[:, :k]
    chosen[tied] = np.argsort(D[tied], axis=1, kind="stable")[:, :k]
    return chosen


def asked_of(asked: ArrayLike, known: Pairwise) -> Floats:
    """Check squared distances from queries to all points that are known, gallery ones first."""
    D = np.asarray(asked, float)
    n, n_gallery = known.n_points, known.n_queries
    if D.ndim != 2 or D.shape[1] != n or not len(D):
        raise InputError(
            f"distances of shape {D.shape} for {n_gallery} gallery and {n - n_gallery} training "
            "sightings; give one column for each sighting, and at least one row"
        )
    require_finite(D, "distances")
    if D.min() < 0.0:
        raise InputError("distances are negative; give squared distances")
    return D


def require_finite(values: Floats, what: str) -> None:
    """Refuse NaN and infinity."""
    if not np.isfinite(values).all():
        raise InputError(f"{what} contain NaN or infinite values; re-ranking needs finite numbers")
