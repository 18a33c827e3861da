from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning

from resight import ITML
from resight.errors import InputError
from resight.learners._laplacian import AllPairs
from resight.learners.itml import LogDetObjective, percentile_bounds


def sightings(seed: int = 0, n_persons: int = 12, n_features: int = 6):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_persons, n_features))
    persons = np.tile(np.arange(n_persons), 2)
    X = centres[persons] + 0.6 * rng.standard_normal((len(persons), n_features))
    return X, persons, np.repeat([0, 1], n_persons)


def constraints(X, persons, views):
    """Differences x_c and signs delta_c of every cross-camera pair, listed one by one."""
    pairs = [(i, j) for j in range(len(X)) for i in range(j) if views[i] != views[j]]
    first, second = np.array(pairs).T
    return X[first] - X[second], np.where(persons[first] == persons[second], 1.0, -1.0)


def bregman_projections(x, delta, bounds, gamma, sweeps):
    """The published algorithm: project on one constraint after another, with slack."""
    A = np.eye(x.shape[1])
    xi = np.where(delta > 0, bounds[0], bounds[1])
    dual = np.zeros(len(x))
    for _ in range(sweeps):
        for c in range(len(x)):
            p = x[c] @ A @ x[c]
            alpha = min(dual[c], gamma / (gamma + 1) * delta[c] * (1 / p - 1 / xi[c]))
            beta = delta[c] * alpha / (1 - delta[c] * alpha * p)
            xi[c] = gamma * xi[c] / (gamma + delta[c] * alpha * xi[c])
            dual[c] -= alpha
            Ax = A @ x[c]
            A += beta * np.outer(Ax, Ax)
    return A, dual, xi


@pytest.mark.parametrize("cameras_known", [True, False])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_optimality_conditions_of_the_constrained_problem(cameras_known, gamma):
    X, persons, cameras = sightings()
    learner = ITML(gamma=gamma, tol=1e-6).fit(X, persons, cameras if cameras_known else None)
    x, delta = constraints(X, persons, cameras if cameras_known else np.arange(len(X)))
    wanted = np.where(delta > 0, *learner.bounds_)
    A = learner.components_ @ learner.components_.T
    d = np.einsum("ci,ij,cj->c", x, A, x)
    xi = np.where(delta * (d - wanted) > 0, d, wanted)
    dual = delta * gamma * (1 / wanted - 1 / xi)
    tolerance = 1e-5
    assert (delta * (d - xi) <= tolerance * wanted).all()  # the constraints, with slack
    assert (dual >= 0).all()
    assert np.abs(dual * (d - xi)).max() <= tolerance  # complementarity
    stationary = np.eye(A.shape[0]) + np.einsum("c,ci,cj->ij", delta * dual, x, x)
    np.testing.assert_allclose(A @ stationary, np.eye(A.shape[0]), atol=tolerance)


def test_bregman_projections_converge_to_the_same_metric():
    X, persons, cameras = sightings(n_persons=8, n_features=3)
    learner = ITML(tol=1e-6).fit(X, persons, cameras)
    x, delta = constraints(X, persons, cameras)
    A, dual, _ = bregman_projections(x, delta, learner.bounds_, 1.0, sweeps=800)
    assert (dual >= 0).all()
    np.testing.assert_allclose(learner.components_ @ learner.components_.T, A, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cameras_known", [True, False])
def test_objective_is_the_definition_and_its_gradient_agrees_with_differences(cameras_known):
    X, persons, cameras = sightings(n_persons=6, n_features=4)
    views = cameras if cameras_known else np.arange(len(X))
    bounds, gamma = (1.0, 6.0), 0.7
    objective = LogDetObjective(
        AllPairs(persons, cameras if cameras_known else None), X, bounds, gamma
    )
    L = np.eye(4) + 0.2 * np.random.default_rng(1).standard_normal((4, 4))
    x, delta = constraints(X, persons, views)
    wanted = np.where(delta > 0, *bounds)
    r = ((x @ L.T) ** 2).sum(axis=1) / wanted
    slack = np.where(delta * (r - 1) > 0, r - np.log(r) - 1, 0).sum()
    A = L.T @ L
    expected = np.trace(A) - np.linalg.slogdet(A)[1] - 4 + gamma * slack
    assert objective(L)[0] == pytest.approx(expected)
    error = check_grad(
        lambda v: objective(v.reshape(4, 4))[0],
        lambda v: objective(v.reshape(4, 4))[1].ravel(),
        L.ravel(),
    )
    assert error < 1e-4 * np.linalg.norm(objective(L)[1])


def test_objective_never_increases_and_the_gradient_ends_below_the_tolerance():
    learner = ITML(tol=1e-5).fit(*sightings())
    assert learner.converged_
    assert learner.gradient_norm_ <= 1e-5
    assert (np.diff(learner.objective_) <= 0).all()
    assert len(learner.objective_) == learner.n_iter_ + 1


def test_bounds_are_percentiles_of_cross_camera_distances():
    X, persons, cameras = sightings()
    learner = ITML(percentiles=(10, 80)).fit(X, persons, cameras)
    x, _ = constraints(X, persons, cameras)
    np.testing.assert_allclose(learner.bounds_, np.percentile((x * x).sum(axis=1), [10, 80]))


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_does_not_depend_on_the_scale_of_the_features(factor):
    X, persons, cameras = sightings()
    expected = ITML(tol=1e-6).fit(X, persons, cameras).distances(X, X)
    scaled = ITML(tol=1e-6).fit(factor * X, persons, cameras).distances(factor * X, factor * X)
    np.testing.assert_allclose(scaled, factor**2 * expected, rtol=1e-5, atol=1e-9 * scaled.max())


def test_persons_with_the_same_features_do_not_break_it():
    X, persons, cameras = sightings()
    X[persons == 1] = X[0]
    learner = ITML().fit(X, persons, cameras)
    assert np.isfinite(learner.components_).all()
    assert percentile_bounds(AllPairs(persons, cameras), X, (0, 50))[0] > 0


def test_warns_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="ITML stopped after 1 iteration"):
        learner = ITML(max_iter=1).fit(*sightings())
    assert not learner.converged_


@pytest.mark.parametrize("percentiles", [(95, 5), (5,), (5, 101), (-1, 50), ("a", "b")])
def test_impossible_percentiles_are_explained(percentiles):
    with pytest.raises(InputError, match="percentiles"):
        ITML(percentiles=percentiles).fit(*sightings())


def test_bad_input_is_explained():
    X, persons, cameras = sightings()
    with pytest.raises(InputError, match="larger than the data allow"):
        ITML(pca=7).fit(X, persons, cameras)
    with pytest.raises(InputError, match="one camera"):
        ITML().fit(X, persons, np.zeros(len(X)))
    with pytest.raises(ValueError, match="gamma"):
        ITML(gamma=0.0).fit(X, persons, cameras)
