"""Algorithm 1 of the paper and the published XQDA, stated plainly: baselines of benchmarks.

The six dense products of Theorems 1 and 2, an explicit inverse, a non-symmetric eigenproblem and
the projection to positive semi-definite matrices, for two cameras.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def algorithm_1(K: Floats, persons: NDArray[np.intp], n: int, reg: float = 1e-7) -> Floats:
    """Return M with d(a, b) = (k_a - k_b)^T M (k_a - k_b); the first `n` rows are camera X."""
    X, Z = K[:, :n], K[:, n:]  # kernel columns of the two cameras
    y_x, y_z = persons[:n], persons[n:]
    m = len(y_z)
    same = (y_x[:, None] == y_z[None, :]).astype(np.float64)  # (n, m)
    F, G = np.diag(same.sum(axis=1)), np.diag(same.sum(axis=0))
    n_similar = same.sum()
    n_dissimilar = n * m - n_similar

    A, B, C = X @ F @ X.T, Z @ G @ Z.T, X @ same @ Z.T
    similar = A + B - C - C.T
    U, V, E = m * X @ X.T, n * Z @ Z.T, X.sum(axis=1)[:, None] @ Z.sum(axis=1)[None, :]
    dissimilar = U + V - E - E.T - similar

    similar, dissimilar = similar / n_similar, dissimilar / n_dissimilar
    similar += reg * np.eye(len(K))
    values, vectors = np.linalg.eig(np.linalg.inv(similar) @ dissimilar)
    real = np.abs(values.imag) == 0
    values, vectors = values[real].real, vectors[:, real].real
    order = np.argsort(-values)
    theta = vectors[:, order[: max(1, int((values > 1).sum()))]]
    theta /= np.sqrt(np.einsum("ij,ij->j", theta, K @ theta))
    gamma = np.linalg.inv(theta.T @ similar @ theta) - np.linalg.inv(theta.T @ dissimilar @ theta)
    weights, basis = np.linalg.eigh((gamma + gamma.T) / 2)
    gamma = (basis * np.maximum(weights, np.finfo(float).eps)) @ basis.T
    return theta @ gamma @ theta.T


def published_xqda(
    X: Floats, persons: NDArray[np.intp], n: int, reg: float = 1e-3
) -> tuple[Floats, Floats]:
    """Return W and M of XQDA as its published code computes them; first `n` rows are camera X.

    The features are reduced to coordinates by a QR factorisation, then left singular vectors of
    Sigma_S^-1 Sigma_D are taken: d(a, b) = (a - b)^T W M W^T (a - b).
    """
    Q, R = np.linalg.qr(X.T)  # (d, N), (N, N): the columns of R are the sightings
    A, B = R[:, :n], R[:, n:]
    same = (persons[:n, None] == persons[None, n:]).astype(np.float64)
    m = B.shape[1]
    n_similar = same.sum()
    weighted_a, weighted_b = A * same.sum(axis=1), B * same.sum(axis=0)
    cross = A @ same @ B.T
    similar = weighted_a @ A.T + weighted_b @ B.T - cross - cross.T
    sums = A.sum(axis=1)[:, None] @ B.sum(axis=1)[None, :]
    dissimilar = m * A @ A.T + n * B @ B.T - sums - sums.T - similar

    similar, dissimilar = similar / n_similar, dissimilar / (n * m - n_similar)
    similar += reg * np.eye(len(similar))
    V, values, _ = np.linalg.svd(np.linalg.solve(similar, dissimilar))
    V = V[:, : max(1, int((values > 1).sum()))]
    M = np.linalg.inv(V.T @ similar @ V) - np.linalg.inv(V.T @ dissimilar @ V)
    return Q @ V, M
