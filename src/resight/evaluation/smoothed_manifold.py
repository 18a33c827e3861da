"""SSM: affinities smoothed over the graph of training people and gallery."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array

from resight.errors import InputError
from resight.evaluation._reciprocal import nearest
from resight.evaluation.pairwise import Floats, Pairwise, asked_of

_ELEMENTS_AT_ONCE = 8_000_000


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
    """Re-rank by affinities that agree along the data, the labels of training people included.

    Parameters
    ----------
    asked : array-like of shape (n_queries, n_gallery + n_training)
        Squared distances from queries to gallery and training sightings.
    known : EmbeddedPoints or MeasuredPoints
        The gallery (in place of its queries) and the training sightings.
    persons : array-like of shape (n_training,)
        Who is seen in the training sightings.
    n_neighbors : int
        Neighbours of each sighting in the graph.
    alpha : float
        How far affinities spread, above 0 and below 1.
    n_iter : int
        Iterations.
    original_weight : float
        Part of the original distance in the result, 0 to 1.

    Returns
    -------
    array of shape (n_queries, n_gallery)
        (1 - original_weight) (1 - affinity) + original_weight distance, both divided by their
        largest value of the query.

    Notes
    -----
    With S the symmetrically normalised affinities of nearest neighbours, and Y = 1 for training
    sightings of one person and for each gallery sighting with itself, the smoothed affinities are

        Q = (1 - alpha) sum_t alpha^t S^t Y S^t, t < n_iter,

    the iterates of Q <- alpha S Q S + (1 - alpha) Y, whose limit minimises the differences of Q
    between pairs that are neighbours on both sides, held to Y. A query, which is outside the graph,
    has the affinities of its own neighbours, A Q. The sum is taken for some queries at a time, so
    that Q, a matrix between all sightings, is never formed: besides `asked` and the result, memory
    grows with the number of sightings.

    The paper's scaling of affinities could not be checked: here exp(-d / (s_i s_j)), s^2 the
    distance of the last neighbour. Sightings that nothing reaches would all be ties, so the
    original distance keeps a part. Its size and alpha were set on synthetic cameras.

    References
    ----------
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
    smoothed: Floats = (1.0 - alpha) * total
    return smoothed


def _relative(values: Floats) -> Floats:
    return values / np.maximum(values.max(axis=1, keepdims=True), np.finfo(float).tiny)
