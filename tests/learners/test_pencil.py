"""The two matrices of the pencil against pairs listed one by one, and the weights of directions."""

from __future__ import annotations

import numpy as np
import pytest

from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pencil import covariances, direction_weights, similar_factor


def listed(X, persons, cameras):
    sums, counts = np.zeros((2, X.shape[1], X.shape[1])), np.zeros(2)
    for i in range(len(X)):
        for j in range(i):
            if cameras is None or cameras[i] != cameras[j]:
                kind = int(persons[i] != persons[j])
                sums[kind] += np.outer(X[i] - X[j], X[i] - X[j])
                counts[kind] += 1
    return sums[0] / counts[0], sums[1] / counts[1]


@pytest.mark.parametrize("n_cameras", [2, 3, 5, None])
def test_covariances_equal_pairs_listed_one_by_one(sample, n_cameras):
    data = sample(n_persons=12, n_features=9)
    cameras = None
    if n_cameras is not None:
        cameras = np.random.default_rng(0).integers(0, n_cameras, len(data.X))
        cameras[:n_cameras] = np.arange(n_cameras)
    pairs = CrossCameraPairs(data.persons, cameras)
    X = data.X + 50.0  # far from the origin, where nothing may cancel
    for ours, expected in zip(covariances(X, pairs), listed(X, data.persons, cameras), strict=True):
        assert np.abs(np.tril(ours - expected)).max() < 1e-12 * np.abs(expected).max()


def test_the_factor_of_similar_pairs_squares_to_their_sum(sample):
    data = sample()
    pairs = CrossCameraPairs(data.persons, data.cameras)
    P = similar_factor(data.X, pairs)
    expected = data.X.T @ pairs.similar.apply(data.X)
    np.testing.assert_allclose(P @ P.T, expected, rtol=1e-11, atol=1e-11)


def test_weights_are_the_square_root_of_the_metric():
    mu = np.array([4.0, 2.0])
    np.testing.assert_allclose(direction_weights(mu) ** 2, [0.75, 0.5])


def test_a_direction_that_separates_nothing_is_kept_with_a_warning():
    with pytest.warns(RuntimeWarning, match=r"0\.9 is not above 1.*Lower reg"):
        weights = direction_weights(np.array([0.9]))
    np.testing.assert_array_equal(weights, [1.0])
