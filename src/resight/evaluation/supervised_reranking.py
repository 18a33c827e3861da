"""Re-ranking that also looks at training people: SSM and OL-MANS.

SSM smooths affinities over the graph of training people and gallery; OL-MANS learns a metric of its
own for each query, from people who it is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array

from resight.errors import InputError
from resight.evaluation.pairwise import Floats, Pairwise, asked_of, nearest

_ELEMENTS_AT_ONCE = 8_000_000
_SWEEPS = 200  # of the dual of a local metric over all negatives, at most
_TOLERANCE = 1e-8  # of its optimality conditions


def smoothed_manifold(
    asked: ArrayLike,
    known: Pairwise,
    persons: ArrayLike,
    *,
    n_neighbors: int = 20,
    alpha: float = 0.5,
    n_iter: int = 15,
    original_weight: float = 0.5,
) -> Floats:
    """Re-rank by affinities that agree along the data, labels included, (n_queries, n_gallery).

    `asked` are squared distances (n_queries, n_gallery + n_training) from queries to `known`, the
    gallery (in place of its queries) and training sightings of `persons`, each of which has
    `n_neighbors` in a graph. With S the symmetrically normalised affinities of neighbours, and
    Y = 1 for training sightings of one person and for each gallery sighting with itself, the
    smoothed affinities are

        Q = (1 - alpha) sum_t alpha^t S^t Y S^t, t < n_iter,

    the iterates of Q <- alpha S Q S + (1 - alpha) Y, whose limit minimises the differences of Q
    between pairs that are neighbours on both sides, held to Y. A query, which is outside the graph,
    has the affinities of its own neighbours, A Q. The sum is taken for some queries at a time, so
    that Q, a matrix between all sightings, is never formed: besides `asked` and the result, memory
    grows with the number of sightings. The result is (1 - original_weight) (1 - affinity) +
    original_weight distance, both divided by their largest value of the query.

    The paper's scaling of affinities could not be checked: here exp(-d / (s_i s_j)), s^2 the
    distance of the last neighbour. Sightings that nothing reaches would all be ties, so the
    original distance keeps a part. Its size and alpha were set on synthetic cameras.

    S. Bai, X. Bai, Q. Tian, "Scalable person re-identification on supervised smoothed manifold",
    CVPR 2017.
    """
    D, labels = asked_of(asked, known), np.asarray(persons)
    n_gallery, k = known.n_queries, min(n_neighbors, known.n_points - 1)
    if labels.shape != (known.n_points - n_gallery,):
        raise InputError(f"{labels.shape} persons; give one person for each training sighting")
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha is {alpha}; it must be above 0 and below 1")
    graph, scale = _graph(known, k)
    together = _same_person(labels, n_gallery)
    result = np.empty((len(D), n_gallery))
    step = max(1, _ELEMENTS_AT_ONCE // (n_iter * known.n_points))
    for start in range(0, len(D), step):
        rows = D[start : start + step]
        affinity = _spread(_of_queries(rows, scale, k), graph, together, alpha, n_iter)
        smooth = 1.0 - _relative(affinity[:, :n_gallery])
        plain = _relative(rows[:, :n_gallery])
        result[start : start + step] = (1.0 - original_weight) * smooth + original_weight * plain
    return result


def _graph(known: Pairwise, k: int) -> tuple[Any, Floats]:
    """Normalised affinities S of neighbours, itself included, and the scale of each point."""
    neighbours, _ = nearest(known, k + 1)
    i, j = np.repeat(np.arange(known.n_points), k + 1), neighbours.ravel()
    distances = known.pairs(i, j)
    scale = np.sqrt(np.maximum(distances[k :: k + 1], np.finfo(float).tiny))
    weights = np.exp(-distances / (scale[i] * scale[j]))
    directed = csr_array((weights, (i, j)), shape=(known.n_points,) * 2)
    W = directed.maximum(directed.T)
    roots = diags_array(1.0 / np.sqrt(W.sum(axis=1)))
    return csr_array(roots @ W @ roots), scale


def _of_queries(D: Floats, scale: Floats, k: int) -> Floats:
    """Affinities of queries to their k nearest sightings, summing to 1, (n, n_points)."""
    near = np.argpartition(D, k - 1, axis=1)[:, :k]
    distances = np.take_along_axis(D, near, axis=1)
    own = np.sqrt(np.maximum(distances.max(axis=1, keepdims=True), np.finfo(float).tiny))
    values = np.exp(-distances / (own * scale[near]))
    affinity = np.zeros(D.shape)
    np.put_along_axis(affinity, near, values / (values.sum(axis=1, keepdims=True) + 1e-300), axis=1)
    return affinity


def _same_person(persons: Any, n_gallery: int) -> Any:
    """Y: 1 between training sightings of one person, 1 on the diagonal of the gallery."""
    codes = np.unique(persons, return_inverse=True)[1].ravel() + n_gallery
    who = np.concatenate([np.arange(n_gallery), codes])
    member = csr_array((np.ones(len(who)), (np.arange(len(who)), who)))
    return csr_array(member @ member.T)


def _spread(A: Floats, S: Any, Y: Any, alpha: float, n_iter: int) -> Floats:
    """Return A Q, by Horner's rule from the last term: ((A_T Y) alpha S + A_T-1 Y) alpha S + ..."""
    terms = [A]  # A S^t
    for _ in range(n_iter - 1):
        terms.append(terms[-1] @ S)
    total = terms.pop() @ Y
    while terms:
        total = alpha * (total @ S) + terms.pop() @ Y
    return (1.0 - alpha) * total


def _relative(values: Floats) -> Floats:
    return values / np.maximum(values.max(axis=1, keepdims=True), np.finfo(float).tiny)


def adapt_locally(
    asked: ArrayLike,
    known: Pairwise,
    *,
    n_negatives: int = 50,
    weight: float = 0.5,
    slack: float = 1.0,
) -> Floats:
    """Add to each query's distances those of a local metric that pushes negatives away.

    `asked` are squared distances (n_queries, n_gallery + n) of any learned metric from queries to
    `known`, the gallery (in place of its queries) and negatives: sightings of people whom no query
    shows, such as training people. The `n_negatives` nearest of each query count; `weight` is that
    of the local distance beside the given one. For a query x and negatives z_i, with
    u_i = x - z_i, the local metric minimises

        |M|^2 / 2 + slack sum_i max(0, 1 - u_i^T M u_i)

    in units of the mean squared distance of the query's negatives. Its dual is
    max sum a - a^T H a / 2 over 0 <= a <= slack, H_ij = (u_i . u_j)^2, and M = sum a_i u_i u_i^T is
    positive semi-definite without asking for it, since a >= 0. All that is needed of embeddings are
    inner products u_i . (x - g), which are sums of squared distances. The dual is solved by
    coordinate ascent to its optimality conditions, all queries at a time.

    That M is built of negatives alone, is semi-definite and is added to a global metric is the
    paper's; its margin, slack and weight could not be checked and were set on synthetic cameras.

    J. Zhou, P. Yu, W. Tang, Y. Wu, "Efficient online local metric adaptation via negative samples
    for person re-identification", ICCV 2017.
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
    step = max(1, _ELEMENTS_AT_ONCE // (2 * k * max(k, D.shape[1])))
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
    return (first[:, :, None] + second[:, None, :] - between) / 2.0


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
