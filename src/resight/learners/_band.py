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
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvals_banded, lapack, solve_banded

from resight.learners._base import Floats

Floats32 = NDArray[np.float32]

_WIDTH = 16  # of the band
_DELAYED = 256  # reflections that are taken off the matrix together, by one product
_STRIP = 256  # columns of the lower triangle that are multiplied at once
_LANES = 16  # vectors of the band that are computed together
_WRONG = 1e-8  # residual of a vector of the band, relative to its largest entry: usual are 1e-11
_CLOSE = 1e-8  # the same of a gap between eigenvalues: vectors of closer ones are made orthogonal
_ALIKE = 1e-5  # product of unit vectors that are made orthogonal as well


def leading_by_band(C: Floats32, most: int, above: float) -> tuple[Floats, Floats32]:
    """Do what `leading_eigenpairs` does; C (lower triangle, Fortran order) is overwritten."""
    band, tau = _reduce(C)
    values = np.asarray(eigvals_banded(band.T, lower=True, check_finite=False), np.float64)[::-1]
    mu = values[: min(most, max(1, int((values > above).sum())))].copy()
    V = _vectors_of_band(band, mu)
    reflect(V, C, tau, _WIDTH)
    return mu, V


def reflect(V: NDArray[Any], reflectors: NDArray[Any], tau: NDArray[Any], offset: int) -> None:
    """Multiply V by the reflections I - tau v v^T, the last one first.

    The v are columns of `reflectors`, each 1 in the row `offset` below the diagonal and 0 above.
    """
    for start in reversed(range(0, len(tau), _DELAYED)):
        some = tau[start : start + _DELAYED]
        P = np.tril(reflectors[start + offset :, start : start + len(some)])
        np.fill_diagonal(P, 1.0)
        T = _compact(P, some).astype(P.dtype)
        V[start + offset :] -= P @ (T @ (P.T @ V[start + offset :]))


def _compact(P: NDArray[Any], tau: NDArray[Any]) -> Floats:
    """Return T of the compact WY form: the product of the reflections is I - P T P^T."""
    coupled = np.eye(len(tau)) + tau[:, None] * np.triu(P.T @ P, 1)
    return np.asarray(np.linalg.solve(coupled, np.diag(tau.astype(np.float64))))


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
            T, exact = _compact(V, own), V.astype(np.float64)
            W = (_product(A, V, below) - X[below:, :k] @ (Z[below:, :k].T @ V)) @ T
            W -= exact @ (0.5 * (T.T @ (exact.T @ W)))
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


def _product(A: Floats32, V: Floats32, start: int) -> Floats:
    """Multiply what A has from row and column `start` on by V; strips are added up in float64."""
    V = np.ascontiguousarray(V)
    product = np.zeros(V.shape)
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
    """Return eigenvectors for eigenvalues that fall, by inverse iteration from chance.

    Where eigenvalues coincide or nearly do, the vectors span what they should, but must be made
    orthogonal: in float64, and with exchanges, since others may lie close to each other.
    """
    from resight.learners._band_kernels import inverse_iteration, residuals

    n, scale, rng = len(band), float(np.abs(band).max()) or 1.0, np.random.default_rng(0)
    V = np.empty((n, len(mu)), np.float32)
    for start in range(0, len(mu), _LANES):
        shifts = mu[start : start + _LANES]
        vectors = rng.uniform(-1.0, 1.0, (n, len(shifts)))
        inverse_iteration(band, shifts, np.finfo(np.float64).eps * scale, vectors)
        for lane in np.flatnonzero(~(residuals(band, shifts, vectors) <= _WRONG * scale)):
            vectors[:, lane] = _by_pivoting(band, shifts[lane], scale, rng.uniform(-1.0, 1.0, n))
        V[:, start : start + _LANES] = vectors
    near = np.diff(mu) >= -_CLOSE * scale
    near |= np.abs(np.einsum("ij,ij->j", V[:, 1:], V[:, :-1])) > _ALIKE
    for group in np.split(np.arange(len(mu)), np.flatnonzero(~near) + 1):
        if len(group) > 1:
            begin = rng.uniform(-1.0, 1.0, (len(group), n))
            again = list(map(_by_pivoting, repeat(band), mu[group], repeat(scale), begin))
            V[:, group] = np.linalg.qr(np.transpose(again))[0]
    return V


def _by_pivoting(band: Floats, shift: float, scale: float, vector: Floats) -> Floats:
    """Do inverse iteration with exchanges of rows, which no vanishing pivot harms; it is slow."""
    n, width = band.shape[0], min(band.shape[1], band.shape[0]) - 1
    whole = np.zeros((2 * width + 1, n))  # as LAPACK holds bands
    for c in range(width + 1):
        whole[width + c, : n - c] = whole[width - c, c:] = band[: n - c, c]
    whole[width] -= shift + 4.0 * np.finfo(np.float64).eps * scale  # not quite singular
    for _ in range(2):
        vector = solve_banded((width, width), whole, vector, check_finite=False)
        vector /= np.linalg.norm(vector)
    return vector
