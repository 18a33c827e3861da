from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning

from resight import LMNN
from resight.errors import InputError
from resight.learners import lmnn
from resight.learners.lmnn import MISSING, LMNNObjective, target_neighbors


def sightings(seed: int = 0, n_persons: int = 25, n_features: int = 5, noise: float = 0.8):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_persons, n_features))
    persons = np.tile(np.arange(n_persons), 3)
    X = centres[persons] + noise * rng.standard_normal((len(persons), n_features))
    return X, persons, np.repeat([0, 1, 1], n_persons)


def objective_of(X, persons, cameras, k=2, push=0.4, smoothing=0.3):
    targets = target_neighbors(X, persons, cameras, k)
    return LMNNObjective(X, persons, cameras, targets, push=push, smoothing=smoothing)


def triplet_by_triplet(L, X, persons, views, k, push, smoothing):
    """The definition of the objective."""
    E = X @ L.T

    def d(i, j):
        return ((E[i] - E[j]) ** 2).sum()

    def h(z):
        return 0.0 if z <= 0 else z * z / (2 * smoothing) if z < smoothing else z - smoothing / 2

    total, n_pairs = 0.0, 0
    for i in range(len(X)):
        others = [j for j in range(len(X)) if views[j] != views[i]]
        mine = [j for j in others if persons[j] == persons[i]]
        for j in sorted(mine, key=lambda j: ((X[i] - X[j]) ** 2).sum())[:k]:
            n_pairs += 1
            total += (1 - push) * d(i, j)
            total += push * sum(
                h(1 + d(i, j) - d(i, m)) for m in others if persons[m] != persons[i]
            )
    return total / n_pairs


@pytest.mark.parametrize("cameras_known", [True, False])
@pytest.mark.parametrize("block_entries", [1, 1 << 22])
def test_objective_is_the_definition_triplet_by_triplet(monkeypatch, cameras_known, block_entries):
    monkeypatch.setattr(lmnn, "BLOCK_ENTRIES", block_entries)
    X, persons, cameras = sightings(n_persons=7)
    L = np.eye(5) + 0.3 * np.random.default_rng(1).standard_normal((5, 5))
    objective = objective_of(X, persons, cameras if cameras_known else None)
    views = cameras if cameras_known else np.arange(len(X))
    expected = triplet_by_triplet(L, X, persons, views, 2, 0.4, 0.3)
    assert objective(L)[0] == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2])
def test_gradient_agrees_with_finite_differences(k):
    objective = objective_of(*sightings(n_persons=7), k=k)
    start = np.eye(5) + 0.1 * np.random.default_rng(1).standard_normal((5, 5))
    error = check_grad(
        lambda v: objective(v.reshape(5, 5))[0],
        lambda v: objective(v.reshape(5, 5))[1].ravel(),
        start.ravel(),
    )
    assert error < 1e-5 * np.linalg.norm(objective(start)[1])


def test_objective_never_increases_and_the_gradient_ends_below_the_tolerance():
    X, persons, cameras = sightings()
    learner = LMNN(tol=1e-6).fit(X, persons, cameras)
    assert learner.converged_
    assert learner.gradient_norm_ <= 1e-6
    assert (np.diff(learner.objective_) <= 0).all()
    assert len(learner.objective_) == learner.n_iter_ + 1
    # the same, by differences of the objective itself at the end
    Z = X - learner.mean_
    targets = target_neighbors(Z, persons, cameras, 1)
    factor = ((Z - Z[targets[:, 0]]) ** 2).sum(axis=1).mean() ** -0.5
    objective = LMNNObjective(factor * Z, persons, cameras, targets, push=0.5, smoothing=0.1)
    L = learner.components_.T / factor
    assert objective(L)[0] == pytest.approx(learner.objective_[-1])
    step = 1e-6
    for i, j in [(0, 0), (1, 3), (4, 2)]:
        E = np.zeros((5, 5))
        E[i, j] = step
        difference = (objective(L + E)[0] - objective(L - E)[0]) / (2 * step)
        assert abs(difference) < 1e-5


def test_the_end_is_the_minimum_over_all_metrics():
    # f is convex in M = L^T L: its gradient G there must be PSD and orthogonal to M.
    X, persons, cameras = sightings()
    objective = objective_of(X, persons, cameras, k=1, push=0.5, smoothing=0.1)
    learner = LMNN(tol=1e-7).fit(X, persons, cameras)
    L = learner.components_.T
    G = objective(L)[1] @ np.linalg.inv(L) / 2  # gradient by L is 2 L G_M; L is invertible here
    G_M = np.linalg.solve(L, G @ L)
    assert np.linalg.eigvalsh((G_M + G_M.T) / 2).min() > -1e-4
    assert abs(np.vdot(G_M, L.T @ L)) < 1e-4


def test_target_neighbors_are_the_nearest_of_the_person_in_other_cameras():
    X = np.array([[0.0], [3.0], [1.0], [2.0], [9.0], [8.0]])
    persons = np.array([0, 0, 0, 0, 1, 2])
    cameras = np.array([0, 1, 1, 0, 0, 1])
    expected = [[2, 1], [3, 0], [0, 3], [1, 2], [MISSING] * 2, [MISSING] * 2]
    np.testing.assert_array_equal(target_neighbors(X, persons, cameras, 2), expected)
    # no column is kept for neighbours nobody has
    assert target_neighbors(X, persons, cameras, 50).shape == (6, 2)
    assert target_neighbors(X, persons, None, 50).shape == (6, 3)


def test_it_finds_the_direction_that_tells_persons_apart():
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(20), 2)
    cameras = np.repeat([0, 1], 20)
    X = np.column_stack([persons / 2.0, 5.0 * rng.standard_normal((40, 2))])
    learner = LMNN().fit(X, persons, cameras)
    before = np.argmin(((X[:20, None] - X[20:]) ** 2).sum(axis=2), axis=1)
    after = np.argmin(learner.distances(X[:20], X[20:]), axis=1)
    assert (before == np.arange(20)).mean() < 0.5
    assert (after == np.arange(20)).all()


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_does_not_depend_on_the_scale_of_the_features(factor):
    X, persons, cameras = sightings()
    expected = LMNN(tol=1e-7).fit(X, persons, cameras).distances(X, X)
    scaled = LMNN(tol=1e-7).fit(factor * X, persons, cameras).distances(factor * X, factor * X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-4, atol=1e-6 * expected.max())


def test_target_pairs_that_coincide_do_not_break_it():
    X, persons, cameras = sightings(noise=0.0)
    learner = LMNN().fit(X, persons, cameras)
    assert np.isfinite(learner.components_).all()


def test_warns_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="LMNN stopped after 1 iteration"):
        learner = LMNN(max_iter=1).fit(*sightings())
    assert not learner.converged_


def test_bad_input_is_explained():
    X, persons, cameras = sightings()
    with pytest.raises(InputError, match="larger than the data allow"):
        LMNN(pca=6).fit(X, persons, cameras)
    with pytest.raises(InputError, match="no person is seen by two cameras"):
        LMNN().fit(X, persons, persons)
    with pytest.raises(InputError, match="one camera"):
        LMNN().fit(X, persons, np.zeros(len(X)))
    with pytest.raises(ValueError, match="n_neighbors"):
        LMNN(n_neighbors=0).fit(X, persons, cameras)
