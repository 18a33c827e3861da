"""Re-ranking: better lists from the neighbourhoods of queries and gallery.

It is post-processing that looks at the whole gallery (and at the other queries), so its figures are
never comparable with those of a plain ranking: every table marks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_array, csr_array

from resight.errors import InputError
from resight.evaluation.pairwise import Floats, Pairwise, nearest, require_finite

_ELEMENTS_AT_ONCE = 4_000_000


def k_reciprocal(
    points: Pairwise, *, k1: int = 20, k2: int = 6, original_weight: float = 0.3
) -> Floats:
    """Re-rank by k-reciprocal encoding, (n_queries, n_gallery).

    Points are encoded by their `k1` mutual neighbours, averaged over the `k2` nearest (1: no such
    query expansion). The result is (1 - original_weight) Jaccard distance of encodings +
    original_weight distance, each divided by the largest one of its query, as in the authors' code.

    With N points the time grows with N^2 but, besides the result, the memory with N k1 k2 only.
    Neighbours at equal distance are taken by row number, the point itself first (the published
    code leaves both to its sorting routine). Meant for galleries with several sightings of a
    person; single-shot galleries gain little or lose.

    Zhong et al., "Re-ranking person re-identification with k-reciprocal encoding", CVPR 2017.

    >>> from resight.evaluation.pairwise import EmbeddedPoints
    >>> rng = np.random.default_rng(0)
    >>> points = EmbeddedPoints(rng.random((3, 4)), rng.random((5, 4)))
    >>> k_reciprocal(points, k1=2, k2=1).shape
    (3, 5)
    """
    _require_at_least_one(k1=k1, k2=k2)
    if not 0.0 <= original_weight <= 1.0:
        raise InputError(f"original_weight is {original_weight}; it must be between 0 and 1")
    n, n_gallery = points.n_queries, points.n_points - points.n_queries
    weights, scale = encode(points, k1, k2)
    asked, held = weights[:n], csc_array(weights[n:])
    result = np.empty((n, n_gallery))
    for some in _portions(asked, held, n_gallery):
        shared = _shared_weight(asked[some], held)  # (n_block, n_gallery)
        jaccard = 1.0 - shared / (2.0 - shared)
        original = points.rows(some.start, some.stop)[:, n:] / scale[some, None]
        jaccard *= 1.0 - original_weight
        original *= original_weight
        np.add(jaccard, original, out=result[some])
    return result


def cross_view_reciprocal(distances: ArrayLike, *, k: int = 20) -> Floats:
    """Re-rank by mutual ranks across views (DCRR), from query-gallery distances alone.

    For each query a window l grows from k until k gallery sightings among its first l have the
    query among their own first l queries. Those k come first, ordered by how early the sighting
    lists the query (then by how early the query lists the sighting); the rest follows in the
    original order. Returns new places, from 0, to be used as distances; ties stay ties.

    The published code never resets l, so its lists depend on the order of the queries; here
    every query starts from k. Equal distances all take the last place of their group, so that
    no tie flatters and the order of rows and columns does not matter.

    Ali, Patel, Velmurugan, Chaudhuri, "Multiple kernel metric learning and dual cross-view
    re-ranking for small scale person re-identification" (published code: KFDA_DCRR).

    >>> cross_view_reciprocal([[1.0, 2.0], [0.5, 3.0]], k=2)
    array([[1., 0.],
           [0., 1.]])
    """
    D = np.asarray(distances, float)
    if D.ndim != 2 or 0 in D.shape:
        raise InputError(f"distances of shape {D.shape}; give (n_queries, n_gallery)")
    require_finite(D, "distances")
    _require_at_least_one(k=k)
    k = min(k, D.shape[1])
    place = _places(D)  # of gallery j in the list of query i
    back = _places(D.T).T  # of query i in the list of gallery j
    window = np.maximum(place, back)  # pair (i, j) is mutual within the first l when this is < l
    mutual = window <= np.partition(window, k - 1, axis=1)[:, k - 1 : k]
    key = back * D.shape[1] + place
    outside = D.size  # larger than any key
    last = np.partition(np.where(mutual, key, outside), k - 1, axis=1)[:, k - 1 : k]
    return _places(np.where(mutual & (key <= last), key, outside + place)).astype(float)


def _require_at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} is {size}; it must be at least 1 (20 is common)")


def _places(values: NDArray[np.float64] | NDArray[np.intp]) -> NDArray[np.intp]:
    """Places from 0 within each row; equal values all take the last place of their group."""
    from scipy.stats import rankdata  # a third of a second

    return rankdata(values, method="max", axis=1).astype(np.intp) - 1


def encode(points: Pairwise, k1: int, k2: int) -> tuple[Any, Floats]:
    """Encode points by k1 neighbours (itself not counted), averaged over k2 (itself counted).

    Returns sparse weights (n_points, n_points), whose rows sum to one and have about k1 k2 entries,
    and the largest squared distance of each point, which others are divided by.
    """
    neighbours, scale = nearest(points, max(k1 + 1, k2))
    mutual = _mutual(neighbours[:, : k1 + 1])  # R(i, k1)
    # Python and NumPy both round halves to even here, as the published code does.
    core = _mutual(neighbours[:, : round(k1 / 2) + 1])  # R(c, k1 / 2)
    i, j = _expanded(mutual, core).tocoo().coords
    values = np.exp(-points.pairs(i, j) / scale[i])
    weights = csr_array((values, (i, j)), shape=mutual.shape)
    weights = _rows_scaled(weights, 1.0 / np.bincount(i, weights=values, minlength=points.n_points))
    if k2 > 1:
        near = neighbours[:, :k2]
        weights = _rows_scaled(_pattern(near) @ weights, np.full(len(near), 1.0 / near.shape[1]))
    return weights, scale


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
    kept = 3 * overlap.data > 2 * np.diff(core.indptr)[c]  # integers: 2/3 of 6 is 4, not 3.9999
    joined = csr_array((np.ones(kept.sum(), np.int32), (i[kept], c[kept])), shape=mutual.shape)
    return mutual + joined @ core


def _rows_scaled(matrix: Any, factors: Floats) -> Any:
    matrix.data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return matrix


def _portions(asked: Any, held: Any, n_gallery: int) -> Iterator[slice]:
    """Divide queries so that neither the block nor the work for it needs much memory."""
    work = np.diff(held.indptr)[asked.indices]  # gallery entries met by each query entry
    upto = np.concatenate([[0], np.cumsum(work)])[asked.indptr]  # work before each query
    most, start, n = max(1, _ELEMENTS_AT_ONCE // n_gallery), 0, asked.shape[0]
    while start < n:
        fits = int(np.searchsorted(upto, upto[start] + _ELEMENTS_AT_ONCE, side="right")) - 1
        stop = max(start + 1, min(fits, start + most, n))
        yield slice(start, stop)
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
