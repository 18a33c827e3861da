"""Graphs over training sightings whose Laplacians are the scatter matrices of LFDA and MFA.

For a symmetric weight matrix W the sum of W_ij (x_i - x_j)(x_i - x_j)^T over unordered pairs is
X^T L X with L = diag(W 1) - W. Weights inside persons are sparse blocks; a weight that is the
same for all pairs needs no matrix at all, so nothing here is larger than the sightings' pairs
within persons or their nearest neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError

from resight.errors import InputError
from resight.learners._base import Codes, Floats
from resight.learners._solvers import leading_pencil


@dataclass(frozen=True)
class Graph:
    """A weighted graph: a sparse part, plus a weight that every pair has besides."""

    weights: sparse.csr_array  # (n_sightings, n_sightings), symmetric; the diagonal is not seen
    uniform: float = 0.0

    def laplacian(self, M: Floats) -> Floats:
        """Return L M for M of shape (n_sightings, k)."""
        degrees = np.asarray(self.weights.sum(axis=1)).ravel()
        product: Floats = degrees[:, None] * M
        product -= self.weights @ M
        if self.uniform:
            product += self.uniform * (len(M) * M - M.sum(axis=0))
        return product

    def scatter(self, Z: Floats) -> Floats:
        """Return Z^T L Z, symmetric, shape (k, k)."""
        S = Z.T @ self.laplacian(Z)
        return (S + S.T) / 2


def check_persons(persons: Codes) -> None:
    """Refuse labels without two persons, or without a person seen twice."""
    counts = np.bincount(persons)
    if len(counts) < 2:
        raise InputError(
            "all sightings are of one person (one class); give sightings of at least two persons"
        )
    if counts.max() < 2:
        raise InputError(
            f"each of the {len(counts)} persons has one sighting, so nothing tells how one person "
            "varies; give at least one person with two sightings"
        )


def person_blocks(persons: Codes, weights: Callable[[Codes], Floats]) -> sparse.csr_array:
    """Build a block matrix: ``weights(members)`` for the rows of each person, 0 elsewhere."""
    order = np.argsort(persons, kind="stable")
    rows, columns, values = [], [], []
    for members in np.split(order, np.flatnonzero(np.diff(persons[order])) + 1):
        rows.append(np.repeat(members, len(members)))
        columns.append(np.tile(members, len(members)))
        values.append(np.asarray(weights(members), dtype=np.float64).ravel())
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    n = len(persons)
    return sparse.csr_array(entries, shape=(n, n))


def same_person(persons: Codes) -> sparse.csr_array:
    """Weight 1 on each pair of one person."""
    return person_blocks(persons, lambda members: np.ones((len(members), len(members))))


def fisher_graphs(persons: Codes, affinity: Callable[[Codes], Floats]) -> tuple[Graph, Graph]:
    """Graphs of the local within and between scatter (Sugiyama 2007, eqs. 12 and 13).

    With n_c the person's count, W_w = A / n_c inside persons and 0 elsewhere;
    W_b = A (1/N - 1/n_c) inside persons and 1/N elsewhere. ``affinity(members)`` gives A between
    the rows of a person.
    """
    check_persons(persons)
    A, n = person_blocks(persons, affinity), len(persons)
    sizes = np.bincount(persons)[persons].astype(np.float64)
    within = sparse.csr_array(sparse.diags_array(1 / sizes) @ A)
    # 1/N on every pair, and what takes it away again inside persons
    between = A / n - within - same_person(persons) / n
    return Graph(within), Graph(sparse.csr_array(between), uniform=1 / n)


def nearest(D2: Floats, allowed: np.ndarray, n_neighbors: int) -> sparse.csr_array:
    """Weight 1 where either of two sightings is among the other's nearest allowed ones."""
    masked = np.where(allowed, D2, np.inf)
    n_neighbors = min(n_neighbors, len(D2) - 1)
    columns = np.argpartition(masked, n_neighbors - 1, axis=1)[:, :n_neighbors]
    rows = np.repeat(np.arange(len(D2)), n_neighbors)
    columns = columns.ravel()
    possible = np.isfinite(masked[rows, columns])
    ones = (np.ones(possible.sum()), (rows[possible], columns[possible]))
    directed = sparse.csr_array(ones, shape=D2.shape)
    return sparse.csr_array(directed.maximum(directed.T))


def kernel_distances(K: Floats) -> Floats:
    """Squared distances in feature space: K_ii + K_jj - 2 K_ij, (N, N)."""
    squares = K.diagonal()
    return np.maximum(squares[:, None] + squares[None, :] - 2.0 * K, 0.0)


def marginal_graphs(
    persons: Codes,
    distances: Callable[[], Floats],
    within_neighbors: int | None,
    between_neighbors: int | None,
) -> tuple[Graph, Graph]:
    """Graphs of marginal Fisher analysis: intrinsic (one person) and penalty (different persons).

    ``None`` neighbours means all of them; only then are the squared `distances` not needed.
    """
    check_persons(persons)
    every = same_person(persons)
    within, between = Graph(every), Graph(sparse.csr_array(-every), uniform=1.0)
    if within_neighbors is None and between_neighbors is None:
        return within, between
    D2 = distances()  # (N, N)
    same = persons[:, None] == persons[None, :]
    if within_neighbors is not None:
        within = Graph(nearest(D2, same & ~np.eye(len(persons), dtype=bool), within_neighbors))
    if between_neighbors is not None:
        between = Graph(nearest(D2, ~same, between_neighbors))
    return within, between


def shrink(S: Floats, amount: float, n_sightings: int) -> Floats:
    """Return (1 - amount) S + amount tr(S) / N I: the published codes divide by sightings."""
    shrunk = (1 - amount) * S
    shrunk[np.diag_indices_from(shrunk)] += amount * np.trace(S) / n_sightings
    return shrunk


def shrunk_directions(
    F: Floats, graphs: tuple[Graph, Graph], reg: float, n_components: int
) -> tuple[Floats, Floats]:
    """Solve for features F (N, p), principal components or kernel rows, S_w shrunk by `reg`."""
    within, between = graphs
    S_w = shrink(within.scatter(F), reg, len(F))  # (p, p)
    return leading_directions(between.scatter(F), S_w, n_components)


def leading_directions(S_b: Floats, S_w: Floats, n_components: int) -> tuple[Floats, Floats]:
    """Solve S_b v = mu S_w v, both overwritten: the largest mu, descending, and v^T S_w v = 1."""
    try:
        # The transposes are the same matrices in the order that LAPACK wants.
        return leading_pencil(S_b.T, S_w.T, min(n_components, len(S_b)))
    except LinAlgError as error:
        raise InputError(
            "the scatter within persons is singular: the sightings of each person do not vary in "
            "every direction. Give a larger reg, fewer principal components, or more sightings"
        ) from error
