"""OL-MANS: a metric of its own for each query, learned from people who it is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from resight.errors import InputError
from resight.evaluation.pairwise import Floats, Pairwise, asked_of

_ELEMENTS_AT_ONCE = 4_000_000
_SWEEPS = 200  # over all negatives, at most
_TOLERANCE = 1e-8  # of the optimality conditions


def adapt_locally(
    asked: ArrayLike,
    known: Pairwise,
    *,
    n_negatives: int = 50,
    weight: float = 0.5,
    slack: float = 1.0,
) -> Floats:
    """Add to each query's distances those of a local metric that pushes negatives away.

    Parameters
    ----------
    asked : array-like of shape (n_queries, n_gallery + n)
        Squared distances of any learned metric from queries to gallery and negatives: sightings
        of people whom no query shows, such as training people.
    known : EmbeddedPoints or MeasuredPoints
        The gallery (in place of its queries) and the negatives.
    n_negatives : int
        The nearest negatives of each query that count.
    weight : float
        Of the local distance beside the given one.
    slack : float
        Price of a negative that stays too near.

    Returns
    -------
    array of shape (n_queries, n_gallery)

    Notes
    -----
    For a query x and negatives z_i, with u_i = x - z_i, the local metric minimises

        |M|^2 / 2 + slack sum_i max(0, 1 - u_i^T M u_i)

    in units of the mean squared distance of the query's negatives. Its dual is
    max sum a - a^T H a / 2 over 0 <= a <= slack, H_ij = (u_i . u_j)^2, and M = sum a_i u_i u_i^T is
    positive semi-definite without asking for it, since a >= 0. All that is needed of embeddings are
    inner products u_i . (x - g), which are sums of squared distances. The dual is solved by
    coordinate ascent to its optimality conditions, all queries at a time.

    That M is built of negatives alone, is semi-definite and is added to a global metric is the
    paper's; its margin, slack and weight could not be checked and were set on synthetic cameras.

    References
    ----------
    J. Zhou, P. Yu, W. Tang, Y. Wu, "Efficient online local metric adaptation via negative samples
    for person re-identification", ICCV 2017.

    Examples
    --------
    >>> from resight.evaluation.pairwise import EmbeddedPoints
    >>> known = EmbeddedPoints([[1.0], [-1.0]], [[1.0]])
    >>> far = adapt_locally([[1.0, 1.0, 1.0]], known)
    >>> bool(far[0, 0] > far[0, 1])  # the first of the gallery looks like the negative
    True
    """
    if n_negatives < 1:
        raise InputError(f"n_negatives is {n_negatives}; give at least 1 (50 is usual)")
    all_distances, n_gallery = asked_of(asked, known), known.n_queries
    D, near = all_distances[:, :n_gallery], all_distances[:, n_gallery:]
    across = known.rows(0, n_gallery)[:, n_gallery:]  # (n_g, n)
    among = known.rows(n_gallery, known.n_points)[:, n_gallery:]  # (n, n)
    k = min(n_negatives, near.shape[1])
    chosen = np.argsort(near, axis=1, kind="stable")[:, :k]  # (n_q, k)
    result = np.empty_like(D)
    step = max(1, _ELEMENTS_AT_ONCE // (k * max(k, D.shape[1])))
    for start in range(0, len(D), step):
        some = slice(start, start + step)
        rows = chosen[some]
        to_negatives = np.take_along_axis(near[some], rows, axis=1)  # |u_i|^2, (b, k)
        unit = to_negatives.mean(axis=1)[:, None, None] + np.finfo(float).tiny
        products = _inner(to_negatives, to_negatives, among[rows[:, :, None], rows[:, None, :]])
        a = _dual((products / unit) ** 2, slack)
        toward = _inner(to_negatives, D[some], across.T[rows]) / unit  # u_i . (x - g), (b, k, n_g)
        local = np.einsum("bi,big->bg", a, toward**2)
        result[some] = D[some] + weight * unit[:, :, 0] * local
    return result


def _inner(first: Floats, second: Floats, between: Floats) -> Floats:
    """(x - p_i) . (x - r_j) from |x - p_i|^2, |x - r_j|^2 and |p_i - r_j|^2, (b, k, n)."""
    products: Floats = (first[:, :, None] + second[:, None, :] - between) / 2.0
    return products


def _dual(H: Floats, slack: float) -> Floats:
    """Maximise sum a - a^T H a / 2 over 0 <= a <= slack for each matrix of a stack, (b, k)."""
    n_queries, k, _ = H.shape
    a, slope = np.zeros((n_queries, k)), np.ones((n_queries, k))  # slope: 1 - H a
    for _ in range(_SWEEPS):
        for i in range(k):
            own = np.maximum(H[:, i, i], np.finfo(float).tiny)
            moved = np.clip(a[:, i] + slope[:, i] / own, 0.0, slack) - a[:, i]
            a[:, i] += moved
            slope -= H[:, i] * moved[:, None]
        # A slope may stay positive at the upper bound and negative at 0.
        if np.abs(np.clip(a + slope, 0.0, slack) - a).max() <= _TOLERANCE:
            break
    return a
