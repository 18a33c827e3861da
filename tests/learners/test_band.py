"""Eigenpairs by way of a band matrix against LAPACK's complete solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from resight.learners import _band, _band_kernels, _solvers
from resight.learners._band import leading_by_band
from resight.learners._band_kernels import inverse_iteration, residuals


def symmetric(values, seed=0):
    """A matrix with these eigenvalues, in Fortran order, and rubbish above its diagonal."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    A = (Q * values) @ Q.T
    C = np.asfortranarray(np.tril(A) + np.triu(np.full((n, n), np.nan), 1), dtype=np.float32)
    return A, C


def whole(band):
    """The matrix of a band."""
    B = sum(np.diag(band[: len(band) - c, c], -c) for c in range(band.shape[1]))
    return B + np.tril(B, -1).T


def assert_eigenpairs(A, mu, V):
    scale = max(float(np.abs(np.linalg.eigvalsh(A)).max()), 1e-30)
    assert V.dtype == np.float32
    np.testing.assert_allclose(A @ V, V * mu, atol=1e-5 * scale)
    np.testing.assert_allclose(V.T @ V, np.eye(len(mu)), atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 32, 33, 49, 300, 700])
def test_the_leading_pairs_are_those_of_the_whole_spectrum(n):
    values = np.sort(np.random.default_rng(n).exponential(size=n))[::-1]
    A, C = symmetric(values)
    half = float(values[(n - 1) // 2 : (n + 3) // 2].mean())
    for most, above, expected in ((n, -1.0, n), (n, half, (n + 1) // 2), (n // 3, -1.0, n // 3)):
        mu, V = leading_by_band(C.copy(order="F"), most, above)
        assert (len(mu), V.shape) == (max(expected, min(most, 1)), (n, len(mu)))
        np.testing.assert_allclose(mu, values[: len(mu)], atol=1e-5 * values[0])
        assert_eigenpairs(A, mu, V)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(40),
        np.repeat([3.0, 2.0, 1.0], 60),
        np.concatenate([np.full(100, 2.0), 2.0 - 1e-9 * np.arange(100), np.zeros(3)]),
        np.concatenate([[-50.0, 40.0], np.linspace(-1.0, 1.0, 90)]),
        np.repeat([20.0, 0.0], [60, 540]),
    ],
    ids=["nothing", "copies", "nearly copies", "negative", "many copies"],
)
@pytest.mark.parametrize("turned", [True, False])
def test_vectors_of_equal_eigenvalues_are_orthogonal(values, turned):
    if turned:
        A, C = symmetric(values)
    else:
        A = np.diag(values)
        C = np.asfortranarray(A, dtype=np.float32)
    mu, V = leading_by_band(C, len(values), -np.inf)
    np.testing.assert_allclose(
        mu, np.sort(values)[::-1], atol=1e-5 * max(1.0, np.abs(values).max())
    )
    assert_eigenpairs(A, mu, V)


def test_a_band_is_reduced_no_further(monkeypatch):
    """The band has the eigenvalues of the matrix, whatever is put off for how long."""
    values = np.linspace(0.1, 4.0, 150)
    A, C = symmetric(values)
    for delayed, strip in ((256, 256), (16, 32), (48, 16), (32, 100)):
        monkeypatch.setattr(_band, "_DELAYED", delayed)
        monkeypatch.setattr(_band, "_STRIP", strip)
        band, _ = _band._reduce(C.copy(order="F"))
        np.testing.assert_allclose(np.linalg.eigvalsh(whole(band)), values, atol=1e-5 * values[-1])
        mu, V = leading_by_band(C.copy(order="F"), 150, 1.0)
        assert_eigenpairs(A, mu, V)


def pivotless(width, seed):
    """A band whose entry (0, 0) is one of its eigenvalues: the first pivot is 0 there."""
    rng = np.random.default_rng(seed)
    n = 80
    band = np.zeros((n, width + 1))
    for c in range(width + 1):
        band[: n - c, c] = rng.normal(size=n - c)
    B = whole(band)
    values, U = np.linalg.eigh(B[1:, 1:])
    squares = (U.T @ B[1:, 0]) ** 2  # B[0, 0] = l is an eigenvalue where a^T (M - l)^-1 a = 0
    i = int(np.minimum(squares[:-1], squares[1:]).argmax())
    root = brentq(lambda x: float((squares / (values - x)).sum()), *between(values[i : i + 2]))
    band[0, 0] = B[0, 0] = root
    return band, B


def between(ends):
    gap = 1e-9 * (ends[1] - ends[0])
    return ends[0] + gap, ends[1] - gap


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("seed", range(3))
def test_vectors_are_found_where_pivots_vanish(width, seed):
    band, B = pivotless(width, seed)
    values, scale = np.linalg.eigvalsh(B)[::-1].copy(), np.abs(B).max()
    lost = np.random.default_rng(1).uniform(-1, 1, (80, 80))
    inverse_iteration(band, values, 1e-16 * scale, lost)
    wrong = residuals(band, values, lost)
    np.testing.assert_allclose(wrong, np.linalg.norm(B @ lost - lost * values, axis=0), atol=1e-12)
    assert wrong.max() > 1e-6 * scale  # so that the next lines test something
    V = _band._vectors_of_band(band, values)
    np.testing.assert_allclose(B @ V, V * values, atol=1e-6 * scale)
    np.testing.assert_allclose(V.T @ V, np.eye(80), atol=1e-6)


def test_vectors_that_are_not_orthogonal_are_made_so(monkeypatch):
    band, B = pivotless(4, 0)
    values = np.linalg.eigvalsh(B)[::-1].copy()

    def mixed(band, shifts, tiny, vectors):
        inverse_iteration(band, shifts, tiny, vectors)
        vectors[:, 2] += 1e-3 * vectors[:, 3]

    monkeypatch.setattr(_band_kernels, "inverse_iteration", mixed)
    monkeypatch.setattr(_band_kernels, "residuals", lambda band, shifts, vectors: 0.0 * shifts)
    V = _band._vectors_of_band(band, values)
    np.testing.assert_allclose(V.T @ V, np.eye(80), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_vectors_of_a_sparse_band_span_the_spaces_of_its_many_equal_eigenvalues(seed):
    rng = np.random.default_rng(seed)
    A = np.tril(rng.normal(size=(200, 200)) * (rng.random((200, 200)) < 0.05))
    A = np.triu(A, -16).astype(np.float32).astype(float)
    A += np.tril(A, -1).T
    mu, V = leading_by_band(np.asfortranarray(A, np.float32), 200, -np.inf)
    assert_eigenpairs(A, mu, V)


def test_large_matrices_of_float32_take_it(monkeypatch):
    values = np.linspace(0.0, 4.0, 200)
    A, C = symmetric(values)
    monkeypatch.setattr(_solvers, "_BAND_FROM", 200)
    mu, V = _solvers.leading_eigenpairs(C.copy(order="F"), 200, 3.0)
    same, _ = leading_by_band(C.copy(order="F"), 200, 3.0)
    np.testing.assert_array_equal(mu, same)
    assert_eigenpairs(A, mu, V)
    double = np.asfortranarray(C, dtype=np.float64)
    assert _solvers.leading_eigenpairs(double, 200, 3.0)[1].dtype == np.float64
