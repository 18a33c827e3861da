from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners._laplacian import CrossCameraPairs
from resight.learners.kissme import positive_root


@pytest.mark.parametrize("seed", range(5))
def test_independent_differences_are_the_rank_of_random_ones(seed, sample):
    data = sample(n_features=200, seed=seed)
    pairs = CrossCameraPairs(data.persons, data.cameras)
    C = data.X.T @ pairs.mean_similar(data.X)
    assert pairs.n_independent == np.linalg.matrix_rank(C, tol=1e-10)


def test_root_of_the_nearest_semidefinite_matrix():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    F = positive_root((Q * [3.0, 1.0, -0.5, -2.0]) @ Q.T)
    np.testing.assert_allclose(F @ F.T, (Q * [3.0, 1.0, 0.0, 0.0]) @ Q.T, atol=1e-12)
    assert F.shape == (4, 2)


def test_nothing_positive_is_refused():
    with pytest.raises(InputError, match="pairs are not swapped"):
        positive_root(-np.eye(3))
