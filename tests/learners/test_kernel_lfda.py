from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from resight import KernelLFDA
from resight.errors import InputError


@pytest.mark.parametrize("kernel", ["linear", "chi2", "exp", "chi2-rbf"])
def test_equals_the_published_code(reference, kernel):
    learner = KernelLFDA(kernel=kernel).fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    # The published code has its kernels in single precision.
    assert reference.error_of(np.sqrt(D), f"klfda_{kernel}") < 1e-4


def test_solves_the_definition_pair_by_pair(sample):
    data = sample(n_persons=7, n_features=5, most=2)
    K = (data.X @ data.X.T + 1) ** 2
    n, reg, k = len(K), 0.05, 3
    D2 = K.diagonal()[:, None] + K.diagonal()[None] - 2 * K
    scale = np.sqrt(np.sort(D2, axis=1)[:, k])
    S_w, S_b = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            outer = np.outer(K[i] - K[j], K[i] - K[j])
            size = np.sum(data.persons == data.persons[i])
            A = np.exp(-D2[i, j] / (scale[i] * scale[j]))
            same = data.persons[i] == data.persons[j]
            S_w += A / size * outer if same else 0.0
            S_b += outer * (A * (1 / n - 1 / size) if same else 1 / n)
    S_w = (1 - reg) * S_w + reg * np.trace(S_w) / n * np.eye(n)
    values = scipy.linalg.eigh(S_b, S_w, eigvals_only=True)
    learner = KernelLFDA(kernel="poly", n_components=4, n_neighbors=k, reg=reg)
    learner.fit(data.X, data.persons)
    np.testing.assert_allclose(learner.eigenvalues_, values[::-1][:4], rtol=1e-7)
    V = learner.coef_
    np.testing.assert_allclose(V.T @ S_w @ V, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(V.T @ S_b @ V, np.diag(learner.eigenvalues_), rtol=1e-7, atol=1e-6)


def test_more_neighbours_than_sightings_name_the_maximum(sample):
    data = sample(n_persons=2, most=1)
    with pytest.raises(InputError, match=r"n_neighbors=6.*at most 3"):
        KernelLFDA().fit(data.X, data.persons)
