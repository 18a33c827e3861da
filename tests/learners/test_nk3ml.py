from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from resight import NK3ML, KernelNFST
from resight.learners.nk3ml import margin_directions


def distances(learner, data, **params):
    learner.set_params(**params).fit(data.X, data.persons)
    return learner.distances(data.X[:7], data.X)


def test_the_linear_margin_is_knfst(sample):
    data = sample(n_persons=9, n_features=30)
    expected = distances(KernelNFST(), data)
    D = distances(NK3ML(), data, margin_kernel="linear")
    np.testing.assert_allclose(D, expected, atol=1e-9 * expected.max())


def test_knfst_is_the_limit_of_a_wide_margin_kernel(sample):
    data = sample(n_persons=9, n_features=30)
    expected = distances(KernelNFST(), data)
    errors = []
    for width in (1e2, 1e4, 1e6):
        learner = NK3ML(margin_width=width)
        D = distances(learner, data) / (2 * learner.margin_.gamma_)
        errors.append(np.abs(D - expected).max() / expected.max())
    assert errors[0] > 20 * errors[1] > 400 * errors[2]
    assert errors[2] < 1e-5


def test_training_sightings_of_a_person_are_one_point_and_margins_are_those_of_the_kernel(sample):
    data = sample(n_persons=9, n_features=30)
    learner = NK3ML().fit(data.X, data.persons)
    assert learner.n_components_ == 8
    E = learner.transform(data.X)
    D = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    # In the feature space of an rbf kernel |phi(p) - phi(q)|^2 = 2 - 2 k(p, q).
    null = learner._rows(data.X) @ learner.coef_
    k = np.exp(-learner.margin_.gamma_ * ((null[:, None] - null[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(D, 2 - 2 * k, atol=1e-8)
    assert D[data.persons[:, None] == data.persons].max() < 1e-10


@pytest.mark.parametrize("n_directions", [1, 2])
def test_a_generic_solver_finds_no_larger_margin(n_directions):
    """Maximise tr W^T S_b W over orthonormal W in the explicit space of a quadratic kernel."""
    rng = np.random.default_rng(4)
    points, counts = rng.normal(size=(5, 2)), np.array([3, 1, 2, 5, 1])
    weights = counts / counts.sum()
    phi = np.column_stack([points, points**2, np.sqrt(2) * points[:, 0] * points[:, 1]])
    values, coefficients = margin_directions(phi @ phi.T, weights)
    centred = phi - weights @ phi
    S_b = (weights[:, None] * centred).T @ centred

    def lost(w):
        W = np.linalg.qr(w.reshape(5, n_directions))[0]
        return -np.trace(W.T @ S_b @ W)

    best = max(-minimize(lost, rng.normal(size=5 * n_directions)).fun for _ in range(3))
    W = phi.T @ coefficients[:, :n_directions]
    np.testing.assert_allclose(W.T @ W, np.eye(n_directions), atol=1e-10)
    assert np.trace(W.T @ S_b @ W) == pytest.approx(best, rel=1e-6)
    assert values[:n_directions].sum() == pytest.approx(best, rel=1e-6)


def test_fewer_directions_are_the_leading_ones(sample):
    data = sample(n_persons=9, n_features=30)
    whole, some = (NK3ML(n_components=n).fit(data.X, data.persons) for n in (None, 3))
    np.testing.assert_allclose(some.transform(data.X), whole.transform(data.X)[:, :3], atol=1e-12)
    assert (np.diff(whole.eigenvalues_) <= 0).all()
