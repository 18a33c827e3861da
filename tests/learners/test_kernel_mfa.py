from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from resight import KernelMFA


@pytest.mark.parametrize("kernel", ["linear", "chi2-rbf"])
def test_equals_the_published_code(reference, kernel):
    learner = KernelMFA(kernel=kernel, between_neighbors=None, n_components=40)
    learner.fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    # The published code has its kernels in single precision.
    assert reference.error_of(np.sqrt(D), f"kmfa_{kernel}") < 1e-4


@pytest.mark.parametrize("between", [None, 3])
def test_solves_the_definition_pair_by_pair(sample, between):
    data = sample(n_persons=7, n_features=5, most=2)
    K = (data.X @ data.X.T + 1) ** 2
    n, reg = len(K), 0.05
    D2 = K.diagonal()[:, None] + K.diagonal()[None] - 2 * K
    same = data.persons[:, None] == data.persons[None]
    nearest = np.argsort(np.argsort(np.where(same, np.inf, D2), axis=1), axis=1)
    unlike = ~same & ((nearest < between) | (between > nearest.T) if between else True)

    def scatter(graph):
        pairs = np.argwhere(np.triu(graph, 1))
        differences = K[pairs[:, 0]] - K[pairs[:, 1]]
        return differences.T @ differences

    S_c = scatter(same)
    S_c = (1 - reg) * S_c + reg * np.trace(S_c) / n * np.eye(n)
    values = scipy.linalg.eigh(scatter(unlike), S_c, eigvals_only=True)
    learner = KernelMFA(kernel="poly", n_components=4, between_neighbors=between, reg=reg)
    learner.fit(data.X, data.persons)
    np.testing.assert_allclose(learner.eigenvalues_, values[::-1][:4], rtol=1e-7)
    np.testing.assert_allclose(learner.coef_.T @ S_c @ learner.coef_, np.eye(4), atol=1e-8)


def test_defaults_are_the_authors():
    assert KernelMFA().get_params()["between_neighbors"] == 12
    assert KernelMFA().get_params()["n_components"] == 30
