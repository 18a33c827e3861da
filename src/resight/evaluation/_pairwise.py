"""Squared distances among queries and gallery, a few rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

Floats = NDArray[np.float64]
_PAIRS_AT_ONCE = 200_000


class Pairwise(ABC):
    """All points [queries; gallery], of which any rows or pairs of distances can be asked."""

    n_queries: int
    n_points: int

    @abstractmethod
    def rows(self, start: int, stop: int) -> Floats:
        """Distances of points start..stop-1 to all points, shape (stop - start, n_points)."""

    @abstractmethod
    def pairs(self, i: NDArray[Any], j: NDArray[Any]) -> Floats:
        """Distances between points i[0] and j[0], i[1] and j[1], ..."""


class EmbeddedPoints(Pairwise):
    """Points given by their embeddings: no matrix of all pairs is ever formed."""

    def __init__(self, queries: ArrayLike, gallery: ArrayLike) -> None:
        Q, G = (np.asarray(part, float) for part in (queries, gallery))
        if Q.ndim != 2 or G.ndim != 2 or Q.shape[1] != G.shape[1] or not len(Q) or not len(G):
            raise InputError(
                f"embeddings of shapes {Q.shape} and {G.shape}; give (n_queries, d) and "
                "(n_gallery, d) with the same d and at least one row each"
            )
        self.E = np.concatenate([Q, G])  # (n_points, d)
        _require_finite(self.E, "embeddings")
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


class MeasuredPoints(Pairwise):
    """Points given by three matrices of distances that exist already."""

    def __init__(self, query_gallery: ArrayLike, query_query: ArrayLike, gg: ArrayLike) -> None:
        self.qg, self.qq, self.gg = (np.asarray(D, float) for D in (query_gallery, query_query, gg))
        shape = self.qg.shape
        if self.qg.ndim != 2 or 0 in shape:
            raise InputError(f"query-gallery distances have shape {shape}; give (n_q, n_g)")
        for what, D, n in (("query", self.qq, shape[0]), ("gallery", self.gg, shape[1])):
            if D.shape != (n, n):
                raise InputError(f"{what}-{what} distances have shape {D.shape}, not ({n}, {n})")
        for D in (self.qg, self.qq, self.gg):
            _require_finite(D, "distances")
            if D.min() < 0.0:
                raise InputError(
                    f"the smallest distance is {D.min():.3g}; k-reciprocal re-ranking "
                    "needs non-negative distances: use a learner with transform, or "
                    "cross_view_reciprocal"
                )
        self.n_queries, self.n_points = shape[0], shape[0] + shape[1]

    def rows(self, start: int, stop: int) -> Floats:
        """Rows of the symmetric matrix [[qq, qg], [qg', gg]]."""
        n = self.n_queries
        above = slice(min(start, n), min(stop, n))
        below = slice(max(start, n) - n, max(stop, n) - n)
        return np.concatenate(
            [
                np.concatenate([self.qq[above], self.qg[above]], axis=1),
                np.concatenate([self.qg.T[below], self.gg[below]], axis=1),
            ]
        )

    def pairs(self, i: NDArray[Any], j: NDArray[Any]) -> Floats:
        """Entries of the same matrix."""
        D, n = np.empty(len(i)), self.n_queries
        i, j = np.minimum(i, j), np.maximum(i, j)  # queries come first, so (gallery, query) is gone
        for matrix, chosen, row, column in (
            (self.qq, j < n, i, j),
            (self.qg, (i < n) & (j >= n), i, j - n),
            (self.gg, i >= n, i - n, j - n),
        ):
            D[chosen] = matrix[row[chosen], column[chosen]]
        return D


def _require_finite(values: Floats, what: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(f"{what} contain NaN or infinite values; re-ranking needs finite numbers")
