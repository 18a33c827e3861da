"""Eigenpairs by way of a band matrix against LAPACK's complete solution."""

from __future__ import annotations

import numpy as np
import pytest

from resight.learners import _band, _solvers
from resight.learners._band import leading_by_band
from resight.learners._band_kernels import inverse_iteration


def symmetric(values, seed=0):
    """A matrix with these eigenvalues, in Fortran order, and rubbish above its diagonal."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    A = (Q * values) @ Q.T
    C = np.asfortranarray(np.tril(A) + np.triu(np.full((n, n), np.nan), 1), dtype=np.float32)
    return A, C


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
    ],
    ids=["nothing", "copies", "nearly copies", "negative"],
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
        B = sum(np.diag(band[: 150 - c, c], -c) for c in range(band.shape[1]))
        B += np.tril(B, -1).T
        np.testing.assert_allclose(np.linalg.eigvalsh(B), values, atol=1e-5 * values[-1])
        mu, V = leading_by_band(C.copy(order="F"), 150, 1.0)
        assert_eigenpairs(A, mu, V)


def test_inverse_iteration_is_as_precise_as_float64_where_pivots_vanish():
    """Entry (0, 0) is the first eigenvalue asked for, so the first pivot is 0."""
    band = np.zeros((60, 3))
    rng = np.random.default_rng(0)
    band[:, 0], band[:59, 1], band[:58, 2] = rng.normal(size=60), 1.0, 0.5
    B = sum(np.diag(band[: 60 - c, c], -c) for c in range(3))
    B += np.tril(B, -1).T
    band[0, 0] = B[0, 0] = np.linalg.eigvalsh(B[1:, 1:])[30]
    values = np.linalg.eigvalsh(B)[::-1]
    V = rng.normal(size=(60, 60))
    inverse_iteration(band, np.ascontiguousarray(values), 1e-15, V)
    np.testing.assert_allclose(B @ V, V * values, atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(60), atol=1e-9)


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
