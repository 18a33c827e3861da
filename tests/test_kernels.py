"""Kernels against their formulas and the published bandwidth rules."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight import kernels
from resight.errors import InputError
from resight.kernels import KERNELS, OF_PRODUCTS, Kernel, inner_products, row_squares

FLOOR = 1e-10


def pairwise(A, B, value):
    return np.array([[value(x, z) for z in B] for x in A])


def squared(x, z):
    return ((x - z) ** 2).sum()


def chi2_distance(x, z):
    return ((x - z) ** 2 / (x + z + FLOOR)).sum()


def quartile(X):
    """The ceil(n/4)-th smallest distance of distinct pairs."""
    distances = sorted(np.sqrt(squared(X[i], X[j])) for i in range(len(X)) for j in range(i))
    return distances[int(np.ceil(0.25 * len(distances))) - 1]


def mean_of_distinct(X, value):
    return np.mean([value(X[i], X[j]) for i in range(len(X)) for j in range(i)])


def expected(name, A, B, X):
    """Kernel values between rows of A and B, bandwidth from X, straight from the definitions."""
    if name == "linear":
        return pairwise(A, B, lambda x, z: x @ z)
    if name == "poly":
        return pairwise(A, B, lambda x, z: (x @ z + 1) ** 2)
    if name == "chi2":
        return pairwise(A, B, lambda x, z: 2 * (x * z / (x + z + FLOOR)).sum())
    if name == "rbf":  # the zero diagonal counts in the mean
        gamma = 1 / pairwise(X, X, squared).mean()
        return pairwise(A, B, lambda x, z: np.exp(-gamma * squared(x, z)))
    if name == "chi2-rbf":
        sigma = mean_of_distinct(X, chi2_distance)
        return pairwise(A, B, lambda x, z: np.exp(-chi2_distance(x, z) / (2 * sigma)))
    sigma = quartile(X)
    return pairwise(A, B, lambda x, z: np.exp(-np.sqrt(squared(x, z)) / (2 * sigma**2)))


NAMED = [name for name in KERNELS if name != "precomputed"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(13, 6))
    X[:, 4] = 0.0  # zero bins: 0/0 of chi-square
    return X, rng.uniform(size=(5, 6))


@pytest.mark.parametrize("name", NAMED)
def test_formula_and_published_bandwidth(name, rows):
    X, T = rows
    kernel = Kernel(name)
    np.testing.assert_allclose(kernel.fit_matrix(X), expected(name, X, X, X), rtol=1e-10)
    np.testing.assert_allclose(kernel.rows(T, X), expected(name, T, X, X), rtol=1e-10)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(NAMED), st.integers(2, 9), st.integers(1, 5))
def test_the_matrix_is_symmetric_and_agrees_with_its_rows(seed, name, n, n_features):
    X = np.random.default_rng(seed).uniform(size=(n, n_features))
    kernel = Kernel(name)
    K = kernel.fit_matrix(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-13)
    atol = 1e-6 if name == "exp" else 1e-12  # the root of a distance magnifies round-off at 0
    np.testing.assert_allclose(kernel.rows(X, X), K, rtol=1e-10, atol=atol)
    if name in ("rbf", "chi2-rbf", "exp"):
        np.testing.assert_array_equal(K.diagonal(), 1.0)
        assert K.min() >= 0


@pytest.mark.parametrize("name", ["rbf", "chi2-rbf", "exp"])
def test_width_multiplies_the_squared_bandwidth(name, rows):
    X, _ = rows
    narrow, wide = Kernel(name), Kernel(name, width=4.0)
    logs = np.log(narrow.fit_matrix(X)), np.log(wide.fit_matrix(X))
    np.testing.assert_allclose(logs[1], logs[0] / 4, rtol=1e-10)
    assert wide.gamma_ == pytest.approx(narrow.gamma_ / 4)


def test_given_gamma_degree_and_coef0(rows):
    X, T = rows
    given_gamma = Kernel("rbf", gamma=0.3, width=2.0)
    given_gamma.fit_matrix(X)
    wanted = pairwise(T, X, lambda x, z: np.exp(-0.15 * squared(x, z)))
    np.testing.assert_allclose(given_gamma.rows(T, X), wanted, rtol=1e-12)
    poly = Kernel("poly", gamma=0.5, degree=3, coef0=2.0)
    np.testing.assert_allclose(poly.fit_matrix(X), (0.5 * X @ X.T + 2) ** 3, rtol=1e-12)


@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_a_gram_matrix_serves_instead_of_rows(name, rows):
    X, T = rows
    direct, shared = Kernel(name), Kernel(name)
    np.testing.assert_allclose(shared.fit_products(X @ X.T), direct.fit_matrix(X), rtol=1e-10)
    of_test = shared.of_products(T @ X.T, row_squares(T), row_squares(X))
    np.testing.assert_allclose(of_test, direct.rows(T, X), rtol=1e-10)


@pytest.mark.parametrize("name", NAMED)
def test_single_precision_descriptors_are_taken_as_they_are(name, rows):
    X, T = (part.astype(np.float32) for part in rows)
    kernel, exact = Kernel(name), Kernel(name)
    K, expected_K = kernel.fit_matrix(X), exact.fit_matrix(X.astype(np.float64))
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected_K, rtol=1e-9)
    np.testing.assert_allclose(
        kernel.rows(T, X), exact.rows(T.astype(np.float64), X.astype(np.float64)), rtol=1e-9
    )


def test_products_in_single_precision_lose_at_most_six_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5000))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    double, single = Kernel("rbf").fit_matrix(X), Kernel("rbf", precision="float32").fit_matrix(X)
    assert 0 < np.abs(single - double).max() < 1e-6


@pytest.mark.parametrize("n_features", [0, 1, 2047, 2048, 2049, 6000])
def test_products_in_groups_of_columns_are_the_products(n_features):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, n_features)), rng.normal(size=(3, n_features))
    np.testing.assert_allclose(inner_products(A, B), A @ B.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(inner_products(A, A), A @ A.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["rbf", "exp", "chi2", "chi2-rbf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_second_copy_of_the_descriptors(name, dtype):
    X = np.random.default_rng(0).uniform(size=(60, 60_000)).astype(dtype)
    kernel = Kernel(name)
    tracemalloc.start()
    try:
        kernel.rows(X[:2], X) if name == "chi2" else kernel.fit_matrix(X[:, :60_000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * X.nbytes


def test_precomputed_passes_through_without_sharing_memory():
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    kernel = Kernel("precomputed")
    given_back = kernel.fit_matrix(K)
    given_back[0, 0] = 9.0
    assert K[0, 0] == 2.0
    np.testing.assert_array_equal(kernel.rows(K, None), K)


def test_a_function_is_a_kernel(rows):
    X, T = rows
    kernel = Kernel(lambda A, B: (A @ B.T) ** 2)
    np.testing.assert_allclose(kernel.fit_matrix(X), (X @ X.T) ** 2)
    np.testing.assert_allclose(kernel.rows(T, X), (T @ X.T) ** 2)


# What is refused


def test_unknown_kernel_names_the_nearest():
    with pytest.raises(InputError, match=r"unknown kernel 'rfb'; did you mean 'rbf'"):
        Kernel("rfb")


@pytest.mark.parametrize("name", kernels.NON_NEGATIVE)
def test_chi_square_refuses_negative_features(name, rows):
    X, T = rows
    with pytest.raises(InputError, match=r"non-negative.*-1.*raw histograms"):
        Kernel(name).fit_matrix(X - 1.0)
    kernel = Kernel(name)
    kernel.fit_matrix(X)
    with pytest.raises(InputError, match="non-negative"):
        kernel.rows(T - 1.0, X)


@pytest.mark.parametrize("name", ["rbf", "exp", "chi2-rbf"])
def test_rows_that_are_all_equal_have_no_bandwidth(name):
    with pytest.raises(InputError, match=r"no bandwidth.*gamma"):
        Kernel(name).fit_matrix(np.ones((4, 3)))


def test_shapes_are_checked():
    with pytest.raises(InputError, match=r"square.*\(2, 3\)"):
        Kernel("precomputed").fit_matrix(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"shape \(2, 2\), not \(3, 3\)"):
        Kernel(lambda A, B: np.ones((2, 2))).fit_matrix(np.ones((3, 1)))


def test_rows_before_fit():
    with pytest.raises(InputError, match="fit_matrix"):
        Kernel("rbf").rows(np.ones((2, 2)), np.ones((2, 2)))
