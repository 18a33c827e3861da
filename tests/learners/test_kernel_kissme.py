from __future__ import annotations

import numpy as np
import pytest

from pairs_kit import fit_listed
from resight import KernelKISSME
from resight.errors import InputError


def test_equals_the_published_code_on_drawn_pairs(reference):
    learner = fit_listed(KernelKISSME(), reference.X, reference.similar, reference.dissimilar)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(D, "kkissme") < 1e-6


def test_equals_the_published_code_on_all_pairs(reference):
    learner = KernelKISSME().fit(reference.X, reference.persons, reference.cameras)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(D, "kkissme_all") < 1e-6


def test_linear_kernel_is_kissme_with_a_ridge(sample):
    """Woodbury: T_D - T_S between kernel rows is the difference of inverses between features."""
    data = sample(n_persons=15, n_features=4)
    reg = 0.05
    i, j = np.triu_indices(len(data.X), 1)
    across = data.cameras[i] != data.cameras[j]
    same = data.persons[i] == data.persons[j]

    def inverse(chosen):
        differences = (data.X[i] - data.X[j])[chosen]
        return np.linalg.inv(differences.T @ differences / chosen.sum() + reg * np.eye(4))

    M = inverse(across & same) - inverse(across & ~same)
    learner = KernelKISSME(kernel="linear", reg=reg, projection="metric")
    learner.fit(data.X, data.persons, data.cameras)
    assert np.linalg.eigvalsh(M)[0] > 0
    difference = data.X[2] - data.X[5]
    D = learner.distances(data.X[2:3], data.X[5:6])
    np.testing.assert_allclose(D[0, 0], difference @ M @ difference, rtol=1e-8)


def test_precomputed_kernel_is_the_kernel(sample):
    data = sample()
    K = data.X @ data.X.T
    direct = KernelKISSME(kernel="linear").fit(data.X, data.persons, data.cameras)
    given = KernelKISSME(kernel="precomputed").fit(K, data.persons, data.cameras)
    np.testing.assert_allclose(given.distances(K, K), direct.distances(data.X, data.X), rtol=1e-9)


def test_nothing_left_of_the_metric():
    learner = KernelKISSME(kernel="linear", projection="metric")
    with pytest.raises(InputError, match="nothing is left"):
        fit_listed(learner, [[0.0], [1.0], [9.0]], similar=[[0, 2]], dissimilar=[[0, 1]])
