from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from resight.errors import InputError
from resight.evaluation.pairwise import EmbeddedPoints
from resight.evaluation.supervised_reranking import _dual, adapt_locally


def squared(A, B):
    return ((A[:, None] - B[None]) ** 2).sum(axis=2)


def adapted(Q, G, N, **options):
    asked = squared(Q, np.concatenate([G, N]))
    return adapt_locally(asked, EmbeddedPoints(G, N), **options)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 4)), rng.normal(size=(9, 4)), rng.normal(size=(30, 4))


@pytest.mark.parametrize("slack", [0.05, 1.0, 100.0])
def test_the_local_metric_is_the_optimum_of_the_primal(points, slack):
    """A generic solver over all symmetric M, semi-definite or not, finds the same metric."""
    Q, G, N = points
    x, u = Q[0], Q[0] - N[:7]
    unit = (u**2).sum(axis=1).mean()
    u = u / np.sqrt(unit)
    upper = np.triu_indices(4)

    def matrix(m):
        M = np.zeros((4, 4))
        M[upper] = m
        return (M + M.T) / 2

    def lost(v):  # M and the slack variables
        return (matrix(v[:10]) ** 2).sum() / 2 + slack * v[10:].sum()

    def room(v):
        return np.einsum("id,de,ie->i", u, matrix(v[:10]), u) - 1 + v[10:]

    bounds = [(None, None)] * 10 + [(0, None)] * 7
    start = np.concatenate([matrix(np.zeros(10))[upper], np.ones(7)])
    constraint = {"type": "ineq", "fun": room}
    options = {"maxiter": 1000, "ftol": 1e-14}
    end = minimize(lost, start, bounds=bounds, constraints=constraint, options=options)
    M = matrix(end.x[:10])
    difference = (x - G) / np.sqrt(unit)
    local = unit * np.einsum("gd,de,ge->g", difference, M, difference)
    D = adapted(Q[:1], G, N[:7], n_negatives=7, weight=1.0, slack=slack)
    np.testing.assert_allclose(D[0] - squared(Q[:1], G)[0], local, atol=5e-4 * max(local))
    H = (u @ u.T) ** 2
    a = _dual(H[None], slack)[0]
    assert a.sum() - a @ H @ a / 2 == pytest.approx(end.fun, rel=1e-6)  # strong duality
    assert np.linalg.eigvalsh(M).min() > -1e-5  # semi-definite although nobody asked for it


def test_the_dual_meets_its_optimality_conditions():
    rng = np.random.default_rng(1)
    u = rng.normal(size=(5, 20, 3))
    H = np.einsum("bid,bjd->bij", u, u) ** 2
    a = _dual(H, 0.3)
    slope = 1 - np.einsum("bij,bj->bi", H, a)
    assert a.min() >= 0
    assert a.max() <= 0.3
    assert np.abs(slope[(a > 0) & (a < 0.3)]).max(initial=0) < 1e-6
    assert slope[a == 0].max(initial=-1) < 1e-6
    assert slope[a == 0.3].min(initial=1) > -1e-6


def test_distances_only_grow_and_no_weight_changes_nothing(points):
    Q, G, N = points
    assert (adapted(Q, G, N) >= squared(Q, G)).all()
    np.testing.assert_array_equal(adapted(Q, G, N, weight=0.0), squared(Q, G))


def test_only_the_nearest_negatives_count(points):
    Q, G, N = points
    far = np.concatenate([N, N + 100.0])
    np.testing.assert_allclose(adapted(Q, G, N, n_negatives=5), adapted(Q, G, far, n_negatives=5))


def test_queries_do_not_depend_on_each_other_and_blocks_do_not_matter(points, monkeypatch):
    Q, G, N = points
    whole = adapted(Q, G, N)
    monkeypatch.setattr("resight.evaluation.supervised_reranking._ELEMENTS_AT_ONCE", 1)
    np.testing.assert_allclose(adapted(Q, G, N), whole, rtol=1e-6)


def test_the_scale_of_distances_does_not_matter(points):
    Q, G, N = points
    np.testing.assert_allclose(adapted(10 * Q, 10 * G, 10 * N), 100 * adapted(Q, G, N))


def test_bad_input(points):
    Q, G, N = points
    with pytest.raises(InputError, match="at least 1"):
        adapted(Q, G, N, n_negatives=0)
    with pytest.raises(InputError, match="one column for each sighting"):
        adapt_locally(squared(Q, G), EmbeddedPoints(G, N))
    with pytest.raises(InputError, match="at least one row each"):
        adapted(Q, G, N[:0])
    with pytest.raises(InputError, match="NaN"):
        adapted(Q * np.nan, G, N)


def test_equal_points():
    same = np.zeros((3, 2))
    np.testing.assert_array_equal(adapted(same, same, same), np.zeros((3, 3)))
