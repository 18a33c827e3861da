"""Leading eigenvectors of a large symmetric matrix in float32, by way of a band matrix.

The reduction to tridiagonal form multiplies the whole matrix by one vector at a time, and so waits
for memory. A reduction to a band multiplies it by `_WIDTH` vectors at a time. The band's
eigenvalues and, by inverse iteration, the wanted vectors are found in float64, and the reflections
of the reduction turn these into vectors of the matrix.

C. H. Bischof, B. Lang and X. Sun, "A framework for symmetric band reduction", ACM Transactions on
Mathematical Software 26 (2000).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvals_banded, lapack

from resight.learners._base import Floats

Floats32 = NDArray[np.float32]

_WIDTH = 16  # of the band
_DELAYED = 256  # reflections that are taken off the matrix together, by one product
_STRIP = 256  # columns of the lower triangle that are multiplied at once
_LANES = 16  # vectors of the band that are computed together
_CLOSE = 1e-8  # of the largest eigenvalue: vectors of closer ones are made orthogonal


def leading_by_band(C: Floats32, most: int, above: float) -> tuple[Floats, Floats32]:
    """Do what `leading_eigenpairs` does; C (lower triangle, Fortran order) is overwritten."""
    band, tau = _reduce(C)
    values = np.asarray(eigvals_banded(band.T, lower=True, check_finite=False), np.float64)[::-1]
    mu = values[: min(most, max(1, int((values > above).sum())))].copy()
    V = _vectors_of_band(band, mu)
    reflect(V, C, tau, _WIDTH)
    return mu, V


def reflect(V: NDArray[Any], reflectors: NDArray[Any], tau: NDArray[Any], below: int) -> None:
    """Multiply V by the reflections I - tau v v^T, the last one first.

    The v are columns of `reflectors`, each 1 in the row so many below the diagonal and 0 above.
    """
    for start in reversed(range(0, len(tau), _DELAYED)):
        own = tau[start : start + _DELAYED]
        P = np.tril(reflectors[start + below :, start : start + len(own)])
        np.fill_diagonal(P, 1.0)
        V[start + below :] -= P @ (_joined(P, own) @ (P.T @ V[start + below :]))


def _joined(P: NDArray[Any], tau: NDArray[Any]) -> NDArray[Any]:
    """Return T for which the product of the reflections is I - P T P^T."""
    apart = np.eye(len(tau)) + tau[:, None] * np.triu(P.T @ P, 1)
    return np.asarray(np.linalg.solve(apart, np.diag(tau)).astype(P.dtype))


def _reduce(A: Floats32) -> tuple[Floats, Floats32]:
    """Reduce A to a band; return it, entry (i + c, i) at [i, c], and tau of the reflections.

    Their vectors take the place of A below the band. What the last reflections change, A - X Z^T
    with X = (V W), Z = (W V) for blocks V of them, is taken off when there are enough.
    """
    n = len(A)
    band, tau = np.zeros((n, _WIDTH + 1)), np.zeros(max(0, n - _WIDTH), np.float32)
    X, Z = np.zeros((2, n, 2 * _DELAYED), np.float32)
    for start in range(0, n, _STRIP):  # squares on the diagonal are whole from here on
        square = A[start : start + _STRIP, start : start + _STRIP]
        square[...] = np.tril(square) + np.tril(square, -1).T
    k = 0
    for start in range(0, n, _WIDTH):
        below = start + _WIDTH
        panel = A[start:, start:below] - X[start:, :k] @ Z[start:below, :k].T
        if below < n:
            factors, own, _, _ = lapack.sgeqrf(panel[_WIDTH:])
            panel[_WIDTH:] = np.triu(factors)
            V = np.tril(factors[:, : len(own)], -1)
            np.fill_diagonal(V, 1.0)
            A[below:, start : start + len(own)], tau[start : start + len(own)] = V, own
            T = _joined(V, own)
            W = (_product(A, V, below) - X[below:, :k] @ (Z[below:, :k].T @ V)) @ T
            W -= V @ (0.5 * (T.T @ (V.T @ W)))
            new = slice(k, k + 2 * len(own))
            X[below:, new], Z[below:, new] = np.hstack([V, W]), np.hstack([W, V])
            k = new.stop
        for c in range(panel.shape[1]):
            column = panel[c : c + _WIDTH + 1, c]
            band[start + c, : len(column)] = column
        if k == X.shape[1]:
            for first, end in _strips(below, n):
                A[first:, first:end] -= X[first:] @ Z[first:end].T
            X[...], Z[...], k = 0.0, 0.0, 0
    return band, tau


def _product(A: Floats32, V: Floats32, start: int) -> Floats32:
    """Multiply what A has from row and column `start` on by V."""
    V = np.ascontiguousarray(V)
    product = np.zeros_like(V)
    for first, end in _strips(start, len(A)):
        own, rest = slice(first - start, end - start), slice(end - start, None)
        product[own] += A[first:end, first:end] @ V[own]
        product[own] += A[end:, first:end].T @ V[rest]
        product[rest] += A[end:, first:end] @ V[own]
    return product


def _strips(start: int, n: int) -> Iterator[tuple[int, int]]:
    """Return where strips begin and end whose squares on the diagonal are whole."""
    edges = [start, *range(start // _STRIP * _STRIP + _STRIP, n, _STRIP), n]
    return pairwise(edges)


def _vectors_of_band(band: Floats, mu: Floats) -> Floats32:
    """Return eigenvectors for eigenvalues that fall: two steps of inverse iteration from chance.

    For vectors as precise as float32, eigenvalues are far enough apart. Where they are not, the
    vectors span what they should, but must be made orthogonal.
    """
    from resight.learners._band_kernels import inverse_iteration

    n, rng = len(band), np.random.default_rng(0)
    scale = float(np.abs(band).max()) or 1.0
    V = np.empty((n, len(mu)), np.float32)
    for start in range(0, len(mu), _LANES):
        shifts = mu[start : start + _LANES]
        vectors = rng.uniform(-1.0, 1.0, (n, len(shifts)))
        inverse_iteration(band, shifts, np.finfo(np.float64).eps * scale, vectors)
        V[:, start : start + _LANES] = vectors
    for group in np.split(np.arange(len(mu)), np.flatnonzero(-np.diff(mu) > _CLOSE * scale) + 1):
        if len(group) > 1:
            V[:, group] = np.linalg.qr(V[:, group])[0]
    return V
