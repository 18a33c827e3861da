"""Leading eigenpairs against LAPACK's complete solution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh

from resight.learners import _band, _solvers
from resight.learners._solvers import direction_weights, gram, leading_eigenpairs, leading_pencil


def pencil(n, seed=0):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, n, n))
    return A @ A.T, B @ B.T / n + 0.1 * np.eye(n)


def lower(M):
    """What the solvers are given: Fortran order, and rubbish where they must not look."""
    return np.asfortranarray(np.tril(M) + np.triu(np.full(M.shape, np.nan), 1))


@pytest.mark.parametrize(("n", "n_leading"), [(1, 1), (2, 1), (30, 1), (30, 7), (30, 29), (30, 30)])
def test_leading_pencil_is_the_end_of_the_whole_spectrum(n, n_leading):
    A, B = pencil(n)
    mu, V = leading_pencil(lower(A), lower(B), n_leading)
    expected = eigh(A, B, eigvals_only=True)[::-1][:n_leading]
    np.testing.assert_allclose(mu, expected, rtol=1e-10)
    np.testing.assert_allclose(V.T @ B @ V, np.eye(n_leading), atol=1e-10)
    np.testing.assert_allclose(A @ V, B @ V * mu, atol=1e-9 * np.abs(A).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_more_than_those_above_a_limit_but_at_least_one(dtype):
    A = lower(np.diag(np.arange(40.0))).astype(dtype)
    for most, above, expected in (
        (40, 29.5, 10),
        (4, 29.5, 4),
        (40, 100.0, 1),
        (40, -1.0, 40),
        (0, 0, 0),
    ):
        mu, V = leading_eigenpairs(A.copy(order="F"), most, above)
        np.testing.assert_allclose(mu, np.arange(39, -1, -1)[:expected], rtol=1e-5)
        assert V.shape == (40, expected)
    rng = np.random.default_rng(0)
    M = rng.normal(size=(40, 40))
    values = np.linalg.eigvalsh(M + M.T)
    limit = float(values[12] + values[13]) / 2
    assert len(leading_eigenpairs(lower(M + M.T).astype(dtype), 40, limit)[0]) == 27


def test_a_matrix_that_is_not_positive_definite_is_refused():
    A, B = pencil(10)
    B -= 2 * np.eye(10) * np.linalg.eigvalsh(B)[5]
    with pytest.raises(LinAlgError, match="positive definite"):
        leading_pencil(lower(A), lower(B), 3)


def test_clusters_far_below_the_largest_eigenvalues():
    """The MRRR routine of LAPACK gives up on such spectra: seen with k-XQDA at small lambda."""
    rng = np.random.default_rng(0)
    n, n_leading = 60, 20
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.sort(
        np.concatenate([rng.uniform(1e9, 6e10, 8), 1 + 1e-9 * rng.uniform(size=40), np.zeros(12)])
    )[::-1]
    mu, V = leading_eigenpairs(lower((Q * values) @ Q.T), n_leading)
    np.testing.assert_allclose(mu, values[:n_leading], atol=1e-14 * values[0] * n)
    np.testing.assert_allclose(V.T @ V, np.eye(n_leading), atol=1e-12)


def test_divide_and_conquer_answers_where_mrrr_fails(monkeypatch):
    A, _ = pencil(30)
    expected, _ = leading_eigenpairs(lower(A), 5)

    def failing(d, e, *_, **__):
        return 0, np.zeros(30), np.zeros((30, 30)), 22

    monkeypatch.setattr(_solvers.lapack, "dstemr", failing)
    mu, V = leading_eigenpairs(lower(A), 5)
    np.testing.assert_allclose(mu, expected, rtol=1e-12)
    np.testing.assert_allclose(A @ V, V * mu, atol=1e-9 * mu[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_gram_is_the_lower_triangle_of_the_product(order):
    P = np.asarray(np.random.default_rng(0).normal(size=(5, 8)), order=order)
    expected = np.tril(P @ P.T)
    np.testing.assert_allclose(np.tril(gram(P)), expected, rtol=1e-13)
    np.testing.assert_allclose(np.tril(gram(P, into=gram(P))), 2 * expected, rtol=1e-13)


def test_weights_are_the_square_root_of_the_metric():
    mu = np.array([4.0, 2.0])
    np.testing.assert_allclose(direction_weights(mu) ** 2, [0.75, 0.5])


def test_a_direction_that_separates_nothing_is_kept_with_a_warning():
    with pytest.warns(RuntimeWarning, match=r"0\.9 is not above 1.*Lower reg"):
        weights = direction_weights(np.array([0.9]))
    np.testing.assert_array_equal(weights, [1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reflections_by_products_are_those_of_lapack(monkeypatch, dtype):
    M = np.random.default_rng(0).normal(size=(60, 60))
    C = np.asfortranarray(M + M.T, dtype=dtype)
    mu, V = leading_eigenpairs(C.copy(order="F"), 15)
    monkeypatch.setattr(_solvers, "_SMALL", 7)  # 60 are many then
    monkeypatch.setattr(_band, "_DELAYED", 7)
    same, by_products = leading_eigenpairs(C.copy(order="F"), 15)
    np.testing.assert_array_equal(mu, same)
    np.testing.assert_allclose(by_products, V, atol=100 * np.finfo(dtype).eps)
