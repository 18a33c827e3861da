from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pairs import ListedPairs, n_independent_similar, positive_root


def test_listed_pairs_sum_their_differences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    pairs = ListedPairs(6, np.array([[0, 1], [4, 2], [0, 1]]), np.array([[5, 3]]))
    similar = [X[0] - X[1], X[4] - X[2], X[0] - X[1]]
    expected = sum(np.outer(difference, difference) for difference in similar) / 3
    np.testing.assert_allclose(X.T @ pairs.mean_similar(X), expected, atol=1e-12)
    np.testing.assert_allclose(
        X.T @ pairs.mean_dissimilar(X), np.outer(X[5] - X[3], X[5] - X[3]), atol=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_independent_differences_are_the_rank_of_random_ones(seed, sample):
    data = sample(n_features=200, seed=seed)
    pairs = CrossCameraPairs(data.persons, data.cameras)
    C = data.X.T @ pairs.mean_similar(data.X)
    assert n_independent_similar(pairs) == np.linalg.matrix_rank(C, tol=1e-10)


def test_a_circle_of_pairs_has_one_difference_less():
    circle = ListedPairs(4, np.array([[0, 1], [1, 2], [2, 0]]), np.array([[0, 3]]))
    assert n_independent_similar(circle) == 2


def test_root_of_the_nearest_semidefinite_matrix():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    F = positive_root((Q * [3.0, 1.0, -0.5, -2.0]) @ Q.T)
    np.testing.assert_allclose(F @ F.T, (Q * [3.0, 1.0, 0.0, 0.0]) @ Q.T, atol=1e-12)
    assert F.shape == (4, 2)


def test_nothing_positive_is_refused():
    with pytest.raises(InputError, match="pairs are not swapped"):
        positive_root(-np.eye(3))
