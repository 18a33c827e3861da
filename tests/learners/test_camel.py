from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from resight import CAMEL
from resight.learners._base import group_means
from resight.learners.camel import _farthest_first, _lloyd


@pytest.fixture
def two_cameras():
    """Persons seen by two cameras, the second of which shows everything otherwise."""
    rng = np.random.default_rng(5)
    looks = rng.normal(size=(40, 12))
    turn = np.eye(12) + 0.05 * rng.normal(size=(12, 12))
    second = 1.5 * looks @ turn + 2.0
    X = np.concatenate([looks, second]) + 0.1 * rng.normal(size=(80, 12))
    return X, np.repeat([0, 1], 40)


def rank1(D):
    return np.mean(D.argmin(axis=1) == np.arange(len(D)))


def test_it_finds_people_whom_plain_distances_do_not_find(two_cameras):
    X, cameras = two_cameras
    plain = ((X[:40, None] - X[None, 40:]) ** 2).sum(axis=2)
    learner = CAMEL().fit(X, cameras=cameras)
    assert rank1(learner.distances(X[:40], X[40:])) > rank1(plain) + 0.3


def test_persons_do_not_matter(two_cameras):
    X, cameras = two_cameras
    E = CAMEL().fit(X, cameras=cameras).transform(X)
    F = CAMEL().fit(X, np.tile(np.arange(40), 2), cameras).transform(X)
    np.testing.assert_array_equal(E, F)


def test_the_objective_never_increases_and_the_constraint_holds(two_cameras):
    X, cameras = two_cameras
    learner = CAMEL(n_components=3, reg=0.5, consistency=0.1, n_clusters=6).fit(X, cameras=cameras)
    assert learner.n_iter_ > 1
    assert (np.diff(learner.objective_) <= 1e-12).all()
    Z = (X - learner.mean_) @ learner.basis_
    total = 0.0
    for view, U in enumerate(learner.projections_):
        own = Z[cameras == view] - learner.offsets_[view]
        total = total + U.T @ (own.T @ own / len(own) + 0.5 * np.eye(12)) @ U
    np.testing.assert_allclose(total, 2 * np.eye(3), atol=1e-9)


def test_a_generic_solver_finds_no_better_projections(two_cameras):
    """One direction, the first clusters: the smallest Rayleigh quotient over both cameras."""
    X, cameras = two_cameras
    learner = CAMEL(n_components=1, reg=0.5, n_clusters=8, max_iter=1).fit(X, cameras=cameras)
    Z = (X - learner.mean_) @ learner.basis_ - learner.offsets_[cameras]
    clusters = _lloyd(Z, _farthest_first(Z, 8))
    wide = np.concatenate([Z * (cameras == view)[:, None] for view in (0, 1)], axis=1)

    def quotient(u):
        a, b = u[:12], u[12:]
        e = wide @ u
        lost = ((e - group_means(e[:, None], clusters)[clusters, 0]) ** 2).mean()
        lost += learner.consistency * ((a - b) ** 2).sum()
        spread = sum((Z[cameras == v] @ w).var() + 0.5 * w @ w for v, w in ((0, a), (1, b)))
        return 2 * lost / spread

    u = learner.projections_[:, :, 0].ravel()
    best = minimize(quotient, u).fun
    assert quotient(u) <= best + 1e-6
    assert learner.objective_[-1] == pytest.approx(quotient(u), rel=1e-6)


def test_cameras_of_new_sightings_are_recognised(two_cameras):
    X, cameras = two_cameras
    learner = CAMEL().fit(X, cameras=cameras)
    Z = (X - learner.mean_) @ learner.basis_
    told = (Z @ learner.recogniser_[:-1] + learner.recogniser_[-1]).argmax(axis=1)
    np.testing.assert_array_equal(told, cameras)


def test_lloyd_ends_where_every_row_is_nearest_to_its_own_mean():
    E = np.random.default_rng(0).normal(size=(60, 3))
    clusters = _lloyd(E, _farthest_first(E, 7))
    D = ((E[:, None] - group_means(E, clusters)[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(D.argmin(axis=1), clusters)
