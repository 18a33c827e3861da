from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.exceptions import ConvergenceWarning

from resight import MLAPG
from resight.errors import InputError
from resight.learners._laplacian import AllPairs
from resight.learners.mlapg import LogisticLoss, psd_root


def two_cameras(golden: Path, name: str, prefix: str):
    data = np.load(golden / "learners" / "data" / f"{name}.npz")
    X = np.vstack([data[f"{prefix}Xa"], data[f"{prefix}Xb"]])
    persons = np.concatenate([data["ya"], data["yb"]])
    cameras = np.repeat([0, 1], [len(data["ya"]), len(data["yb"])])
    return X, persons, cameras, data[f"{prefix}Ta"], data[f"{prefix}Tb"]


def sightings(seed: int = 0, n_persons: int = 8, n_features: int = 5):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_persons, n_features))
    persons = np.tile(np.arange(n_persons), 2)
    X = centres[persons] + 0.4 * rng.standard_normal((len(persons), n_features))
    return X, persons, np.repeat([0, 1], n_persons)


@pytest.mark.parametrize(
    ("name", "method", "prefix"),
    [("s200", "mlapg", "P"), ("u1000", "mlapg", "P"), ("s200", "mlapg_full", "")],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equals_the_authors_code_on_features_as_they_are(golden, name, method, prefix):
    X, persons, cameras, queries, gallery = two_cameras(golden, name, prefix)
    learner = MLAPG(scale=None).fit(X, persons, cameras)
    D = learner.distances(queries, gallery)
    expected = np.load(golden / "learners" / f"{name}__{method}.npz")["D"]
    assert np.abs(D - expected).max() <= 1e-6 * expected.max()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_float32_gives_the_same_distances_and_loss(golden):
    X, persons, cameras, queries, gallery = two_cameras(golden, "s200", "")
    exact, quick = (
        MLAPG(scale=None, precision=precision, max_iter=60).fit(X, persons, cameras)
        for precision in ("float64", "float32")
    )
    D = exact.distances(queries, gallery)
    assert np.abs(quick.distances(queries, gallery) - D).max() <= 1e-4 * D.max()
    np.testing.assert_allclose(quick.objective_, exact.objective_, rtol=1e-5)


def loss_of(cameras_known: bool = True, n_persons: int = 6) -> LogisticLoss:
    X, persons, cameras = sightings(n_persons=n_persons)
    return LogisticLoss(AllPairs(persons, cameras if cameras_known else None), X)


@pytest.mark.parametrize("cameras_known", [True, False])
def test_loss_is_the_definition_pair_by_pair(cameras_known):
    X, persons, cameras = sightings(n_persons=6)
    loss = loss_of(cameras_known)
    root = np.random.default_rng(3).standard_normal((5, 4))
    views = cameras if cameras_known else np.arange(len(X))
    pairs = [(i, j) for j in range(len(X)) for i in range(j) if views[i] != views[j]]
    mu = np.mean([((X[i] - X[j]) ** 2).sum() for i, j in pairs])
    terms = {True: [], False: []}
    for i, j in pairs:
        same = bool(persons[i] == persons[j])
        d = (((X[i] - X[j]) @ root) ** 2).sum()
        terms[same].append(np.log1p(np.exp((d - mu) if same else (mu - d))))
    assert loss.mu == pytest.approx(mu)
    assert loss.at(root).value == pytest.approx(np.mean(terms[True]) + np.mean(terms[False]))


def test_gradient_agrees_with_finite_differences():
    loss = loss_of()

    def distances(M):
        ((first, second),) = loss.pairs.blocks
        apart = loss.Z[first][:, None] - loss.Z[second]
        return np.einsum("ijk,kl,ijl->ij", apart, M, apart).ravel()

    error = check_grad(
        lambda m: loss.value(distances(m.reshape(5, 5))),
        lambda m: loss.gradient(distances(m.reshape(5, 5))).ravel(),
        np.eye(5).ravel(),
    )
    assert error < 1e-6


def test_a_step_obeys_the_quadratic_bound_and_lowers_the_loss():
    loss = loss_of()
    start = loss.at(np.eye(5))
    step, lipschitz = loss.accelerated_step(start, start, 0.0, 2.0**-8)
    assert step.value < start.value
    assert lipschitz >= 2.0**-8
    assert np.linalg.eigvalsh(step.M).min() > -1e-12


def test_psd_root_drops_exactly_the_negative_part():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    S = (U * [-3.0, -1.0, 0.5, 1.0, 2.0]) @ U.T
    R = psd_root(S)
    assert R.shape == (5, 3)
    np.testing.assert_allclose(R @ R.T, (U * [0, 0, 0.5, 1.0, 2.0]) @ U.T, atol=1e-14)
    np.testing.assert_allclose(psd_root(S, 1) @ psd_root(S, 1).T, R @ R.T, atol=1e-14)
    assert psd_root(-np.eye(3)).shape == (3, 1)  # never an embedding without a column
    assert psd_root(-np.eye(3), 0).shape == (3, 1)


def test_the_end_is_the_minimum_over_all_metrics():
    # First-order conditions over M >= 0: the gradient is PSD and orthogonal to M.
    X, persons, cameras = sightings(n_persons=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = MLAPG(scale=1.0, tol=0.0, max_iter=1000).fit(X, persons, cameras)
    Z = X - learner.mean_
    loss = LogisticLoss(AllPairs(persons, cameras), Z)
    factor = loss.mu**-0.5
    scaled = LogisticLoss(loss.pairs, factor * Z)
    end = scaled.at(learner.components_ / factor)
    G = scaled.gradient(end.distances)
    start = np.abs(scaled.gradient(scaled.at(np.eye(5)).distances)).max()
    assert np.linalg.eigvalsh(G).min() > -1e-4 * start
    assert abs(np.vdot(G, end.M)) < 1e-4 * start * np.abs(end.M).max()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_default_does_not_depend_on_the_scale_of_the_features(factor):
    X, persons, cameras = sightings()
    expected = MLAPG().fit(X, persons, cameras).distances(X, X)
    scaled = MLAPG().fit(factor * X, persons, cameras).distances(factor * X, factor * X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-6, atol=1e-8 * expected.max())


def test_stops_on_its_criterion_or_warns():
    X, persons, cameras = sightings()
    learner = MLAPG(tol=0.5).fit(X, persons, cameras)
    last, end = learner.objective_[-2:]
    assert learner.converged_
    assert abs(end - last) < 0.5 * last
    assert len(learner.objective_) == learner.n_iter_ + 1
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert not MLAPG(max_iter=2, tol=0.0).fit(X, persons, cameras).converged_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_three_cameras_count_every_cross_camera_pair_once():
    X, persons, cameras = sightings(n_persons=9)
    three = np.where(persons % 3 == 0, 2, cameras)
    views = [(i, j) for a, b in AllPairs(persons, three).blocks for i in a for j in b]
    expected = {(i, j) for i in range(18) for j in range(18) if three[i] < three[j]}
    assert len(views) == len(expected)
    assert set(views) == expected
    assert MLAPG().fit(X, persons, three).distances(X, X).shape == (18, 18)


def test_bad_input_is_explained():
    X, persons, cameras = sightings()
    with pytest.raises(InputError, match="larger than the data allow"):
        MLAPG(pca=6).fit(X, persons, cameras)
    with pytest.raises(InputError, match="one camera"):
        MLAPG().fit(X, persons, np.zeros(len(X)))
    with pytest.raises(InputError, match="no person is seen by two cameras"):
        MLAPG().fit(X, np.arange(len(X)), cameras)
    with pytest.raises(ValueError, match="scale"):
        MLAPG(scale=-1.0).fit(X, persons, cameras)
