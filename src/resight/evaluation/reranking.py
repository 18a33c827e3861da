"""Re-ranking: better lists from the neighbourhoods of queries and gallery.

It is post-processing that looks at the whole gallery (and at the other queries), so its figures are
never comparable with those of a plain ranking: every table marks them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.evaluation._reciprocal import re_ranked
from resight.evaluation.pairwise import Floats, Pairwise, require_finite


def k_reciprocal(
    points: Pairwise, *, k1: int = 20, k2: int = 6, original_weight: float = 0.3
) -> Floats:
    """Re-rank by k-reciprocal encoding.

    Parameters
    ----------
    points : EmbeddedPoints or MeasuredPoints
        Queries and gallery, by their embeddings or by the squared distances among them all.
    k1 : int
        Size of the neighbourhoods.
    k2 : int
        How many nearest points an encoding is averaged over; 1 = no such query expansion.
    original_weight : float
        Part of the original distance in the result, 0 to 1 (lambda in the paper).

    Returns
    -------
    array of shape (n_queries, n_gallery)
        (1 - original_weight) Jaccard distance + original_weight normalised distance.

    Notes
    -----
    With N = n_queries + n_gallery points the time grows with N^2 but, besides the result, the
    memory with N k1 k2 only. Each distance is divided by the largest one of its query, as in the
    authors' code. Neighbours at equal distance are taken by row number, the point itself first
    (the published code leaves both to its sorting routine). Meant for galleries with several
    sightings of a person; single-shot galleries gain little or lose.

    References
    ----------
    Zhong et al., "Re-ranking person re-identification with k-reciprocal encoding", CVPR 2017.

    Examples
    --------
    >>> from resight.evaluation.pairwise import EmbeddedPoints
    >>> rng = np.random.default_rng(0)
    >>> points = EmbeddedPoints(rng.random((3, 4)), rng.random((5, 4)))
    >>> k_reciprocal(points, k1=2, k2=1).shape
    (3, 5)
    """
    _require_at_least_one(k1=k1, k2=k2)
    if not 0.0 <= original_weight <= 1.0:
        raise InputError(f"original_weight is {original_weight}; it must be between 0 and 1")
    result = np.empty((points.n_queries, points.n_points - points.n_queries))
    for rows, block in re_ranked(points, k1, k2, original_weight):
        result[rows] = block
    return result


def cross_view_reciprocal(distances: ArrayLike, *, k: int = 20) -> Floats:
    """Re-rank by mutual ranks across views (DCRR), from query-gallery distances alone.

    For each query a window l grows from k until k gallery sightings among its first l have the
    query among their own first l queries. Those k come first, ordered by how early the sighting
    lists the query (then by how early the query lists the sighting); the rest follows in the
    original order.

    Parameters
    ----------
    distances : array-like of shape (n_queries, n_gallery)
        Smaller is more alike.
    k : int
        How many places are re-ranked; at most the whole gallery.

    Returns
    -------
    array of shape (n_queries, n_gallery)
        New places, from 0; use them as distances. Equal places are ties and stay ties.

    Notes
    -----
    The published code never resets l, so its lists depend on the order of the queries; here
    every query starts from k. Equal distances all take the last place of their group, so that
    no tie flatters and the order of rows and columns does not matter.

    References
    ----------
    Ali, Patel, Velmurugan, Chaudhuri, "Multiple kernel metric learning and dual cross-view
    re-ranking for small scale person re-identification" (published code: KFDA_DCRR).

    Examples
    --------
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
    head = mutual & (key <= last)
    return _places(np.where(head, key, outside + place)).astype(float)


def _require_at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} is {size}; it must be at least 1 (20 is common)")


def _places(values: NDArray[np.float64] | NDArray[np.intp]) -> NDArray[np.intp]:
    """Places from 0 within each row; equal values all take the last place of their group."""
    order = np.argsort(values, axis=1)
    ranked = np.take_along_axis(values, order, axis=1)
    ends = np.ones(ranked.shape, bool)  # whether a group of equal values ends here
    ends[:, :-1] = ranked[:, 1:] != ranked[:, :-1]
    own = np.where(ends, np.arange(ranked.shape[1]), ranked.shape[1])
    last = np.minimum.accumulate(own[:, ::-1], axis=1)[:, ::-1]
    places = np.empty_like(order)
    np.put_along_axis(places, order, last, axis=1)
    return places
