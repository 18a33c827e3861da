from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit

from resight import LDML, MLAPG
from resight.learners._laplacian import AllPairs
from resight.learners.ldml import _Likelihood


@pytest.fixture
def overlapping():
    """Pairs that no metric tells apart without errors, so that the likelihood has a maximum."""
    rng = np.random.default_rng(3)
    persons = np.tile(np.arange(15), 2)
    cameras = np.repeat([0, 1], 15)
    X = rng.normal(size=(15, 3))[persons] + rng.normal(size=(30, 3)) * [0.2, 0.6, 2.0]
    return X, persons, cameras


def minus_likelihood(D, same, bias):
    return np.logaddexp(0.0, np.where(same, D - bias, bias - D)).mean()


def test_a_generic_solver_finds_the_same_likelihood(overlapping):
    X, persons, cameras = overlapping
    learner = LDML(pca="full", tol=1e-11, max_iter=20000).fit(X, persons, cameras)
    same = np.eye(15, dtype=bool)
    U = (X[:15, None] - X[None, 15:]).reshape(-1, 3)

    def lost(v):
        E = U @ v[:9].reshape(3, 3)
        return minus_likelihood((E**2).sum(axis=1), same.ravel(), v[9])

    starts = [np.append(np.eye(3).ravel() * scale, 1.0) for scale in (0.3, 1.0)]
    best = min(minimize(lost, v, options={"gtol": 1e-9}).fun for v in starts)
    D = learner.distances(X[:15], X[15:])
    assert minus_likelihood(D, same, learner.bias_) == pytest.approx(best, rel=1e-6)
    assert learner.objective_[-1] == pytest.approx(best, rel=1e-6)


def test_at_the_best_bias_as_many_pairs_are_expected_as_there_are(overlapping):
    X, persons, cameras = overlapping
    learner = LDML(tol=1e-3).fit(X, persons, cameras)
    p = expit(learner.bias_ - learner.distances(X[:15], X[15:]))
    assert p.sum() == pytest.approx(15, rel=1e-9)


def test_the_gradient_is_that_of_the_value(overlapping):
    X, persons, cameras = overlapping
    pairs = AllPairs(persons, cameras)
    loss = _Likelihood(pairs, X, "float64")

    def distances(m):
        apart = X[:15, None] - X[None, 15:]
        return np.einsum("ijd,de,ije->ij", apart, m.reshape(3, 3), apart).ravel()

    m = (np.eye(3) + 0.1).ravel()
    error = check_grad(
        lambda v: loss.value(distances(v)), lambda v: loss.gradient(distances(v)).ravel(), m
    )
    assert error < 1e-6


def test_the_scale_of_the_features_does_not_matter(overlapping):
    X, persons, cameras = overlapping
    D, E = (
        LDML(tol=1e-9, max_iter=2000).fit(a * X, persons, cameras).distances(a * X[:9], a * X[9:])
        for a in (1.0, 1000.0)
    )
    np.testing.assert_allclose(D, E, rtol=1e-6)


def test_pairs_that_can_be_told_apart_end_by_tol_and_others_by_max_iter(sample):
    data = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LDML(tol=1e-2).fit(data.X, data.persons, data.cameras).converged_
    with pytest.warns(UserWarning, match=r"LDML stopped after max_iter=1 .* raise max_iter"):
        LDML(max_iter=1).fit(data.X, data.persons, data.cameras)
    with pytest.warns(UserWarning, match=r"MLAPG stopped"):
        MLAPG(max_iter=1).fit(data.X, data.persons, data.cameras)
