"""Sparse k-reciprocal encoding: who are mutual neighbours, and how alike two neighbourhoods are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from resight.evaluation.pairwise import Floats, Pairwise

_ELEMENTS_AT_ONCE = 4_000_000


def re_ranked(
    points: Pairwise, k1: int, k2: int, original_weight: float
) -> Iterator[tuple[slice, Floats]]:
    """Yield (queries, distances to the gallery) until all queries are done.

    The distance is (1 - original_weight) Jaccard + original_weight normalised distance.
    """
    n = points.n_queries
    weights, scale = encode(points, k1, k2)
    asked, held = weights[:n], csc_array(weights[n:])
    for start, stop in _portions(asked, held, points.n_points - n):
        shared = _shared_weight(asked[start:stop], held)  # (n_block, n_gallery)
        jaccard = 1.0 - shared / (2.0 - shared)
        original = points.rows(start, stop)[:, n:] / scale[start:stop, None]
        jaccard *= 1.0 - original_weight
        original *= original_weight
        yield slice(start, stop), np.add(jaccard, original, out=jaccard)


def encode(points: Pairwise, k1: int, k2: int) -> tuple[Any, Floats]:
    """Encode points by k1 neighbours (itself not counted), averaged over k2 (itself counted).

    Returns sparse weights (n_points, n_points), whose rows sum to one and have about k1 k2 entries,
    and the largest squared distance of each point, which others are divided by.
    """
    neighbours, scale = nearest(points, max(k1 + 1, k2))
    mutual = _mutual(neighbours[:, : k1 + 1])  # R(i, k1)
    # Python and NumPy both round halves to even here, as the published code does.
    core = _mutual(neighbours[:, : round(k1 / 2) + 1])  # R(c, k1 / 2)
    expanded = _expanded(mutual, core).tocoo()
    i, j = expanded.coords
    values = np.exp(-points.pairs(i, j) / scale[i])
    weights = csr_array((values, (i, j)), shape=mutual.shape)
    sums = np.bincount(i, weights=values, minlength=points.n_points)
    weights = _rows_scaled(weights, 1.0 / sums)
    if k2 > 1:
        near = neighbours[:, :k2]
        weights = _rows_scaled(_pattern(near) @ weights, np.full(len(near), 1.0 / near.shape[1]))
    return weights, scale


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


def _pattern(columns: NDArray[np.int32]) -> Any:
    """Sparse 0/1 matrix with ones at (i, columns[i])."""
    n, k = columns.shape
    indptr = np.arange(0, n * k + 1, k, dtype=np.int32)
    ones = np.ones(n * k, np.int32)
    return csr_array((ones, np.sort(columns, axis=1).ravel(), indptr), shape=(n, n))


def _mutual(columns: NDArray[np.int32]) -> Any:
    """Pairs of points that are neighbours of each other: symmetric, diagonal included."""
    near = _pattern(columns)
    return csr_array(near.multiply(near.T))


def _expanded(mutual: Any, core: Any) -> Any:
    """R*(i): R(i) and the cores R(c, k1/2) of members c that lie in R(i) by more than 2/3."""
    overlap = (mutual @ core).multiply(mutual).tocoo()  # |R(i) and R(c, k1/2)| at (i, c)
    i, c = overlap.coords
    sizes = np.diff(core.indptr)
    kept = 3 * overlap.data > 2 * sizes[c]  # integers: 2/3 of 6 is 4, not 3.9999
    joined = csr_array((np.ones(kept.sum(), np.int32), (i[kept], c[kept])), shape=mutual.shape)
    return mutual + joined @ core


def _rows_scaled(matrix: Any, factors: Floats) -> Any:
    matrix.data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return matrix


def _portions(asked: Any, held: Any, n_gallery: int) -> Iterator[tuple[int, int]]:
    """Divide queries so that neither the block nor the work for it needs much memory."""
    work = np.diff(held.indptr)[asked.indices]  # gallery entries met by each query entry
    upto = np.concatenate([[0], np.cumsum(work)])[asked.indptr]  # work before each query
    most, start, n = max(1, _ELEMENTS_AT_ONCE // n_gallery), 0, asked.shape[0]
    while start < n:
        fits = int(np.searchsorted(upto, upto[start] + _ELEMENTS_AT_ONCE, side="right")) - 1
        stop = max(start + 1, min(fits, start + most, n))
        yield start, stop
        start = stop


def _shared_weight(asked: Any, held: Any) -> Floats:
    """Sum over m of min(asked[i, m], held[j, m]), dense of shape (n_block, n_gallery)."""
    n_block, n_gallery = asked.shape[0], held.shape[0]
    query = np.repeat(np.arange(n_block), np.diff(asked.indptr))
    first, counts = held.indptr[asked.indices], np.diff(held.indptr)[asked.indices]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    # For each entry (i, m) of `asked` the whole column m of `held`, one after the other.
    entries = np.arange(total) + np.repeat(first - (ends - counts), counts)
    smaller = np.minimum(np.repeat(asked.data, counts), held.data[entries])
    cell = np.repeat(query * n_gallery, counts) + held.indices[entries]
    sums = np.bincount(cell, weights=smaller, minlength=n_block * n_gallery)
    return np.asarray(sums, float).reshape(n_block, n_gallery)
