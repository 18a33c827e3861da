"""Algorithm 1 of the paper, stated plainly: the baseline of the k-XQDA benchmarks.

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
