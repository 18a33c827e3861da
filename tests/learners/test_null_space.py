"""The fast path of k-XQDA: never far from the dense one, and stepping aside where it must."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairs_kit import draw_counts, relative_error, sightings
from resight import KXQDA
from resight.errors import InputError
from resight.learners import _null_space
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._null_space import solve_in_null_space

COUNTS = ("one each", "equal", "unequal", "one camera only", "few with more")


@settings(deadline=None, max_examples=250, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(COUNTS),
    n_persons=st.integers(3, 40),
    n_cameras=st.sampled_from([2, 2, 3, 4, None]),
    n_features=st.sampled_from([8, 30, 100, 400]),
    noise=st.sampled_from([0.2, 0.5, 1.0, 2.0]),
    unit=st.booleans(),
    kernel=st.sampled_from(["rbf", "rbf", "linear", "poly", "exp"]),
    width=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    log_reg=st.floats(-10, -1),
    reg_form=st.sampled_from(["identity", "relative"]),
)
def test_auto_is_within_a_millionth_of_dense(
    seed, kind, n_persons, n_cameras, n_features, noise, unit, kernel, width, log_reg, reg_form
):
    rng = np.random.default_rng(seed)
    counts = draw_counts(rng, kind, n_persons, n_cameras or 2)
    X, persons, cameras, T = sightings(rng, counts, n_features, noise, unit)
    given_cameras = None if n_cameras is None else cameras
    learner = KXQDA(kernel=kernel, width=width, reg=10.0**log_reg, reg_form=reg_form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of regularisers too large or too small: tested elsewhere
        try:
            dense = KXQDA(**{**learner.get_params(), "solver": "dense"})
            dense.fit(X, persons, given_cameras)
        except InputError:
            return  # reg too small for the scale: there is no dense answer to compare with
        learner.fit(X, persons, given_cameras)
    assert relative_error(learner, dense, T) < 1e-6


@pytest.mark.parametrize("counts", [(1, 1), (2, 2), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize("reg_form", ["identity", "relative"])
def test_the_papers_setting_is_fast(counts, reg_form):
    rng = np.random.default_rng(1)
    X, persons, cameras, T = sightings(rng, np.tile(counts, (40, 1)), 400, 0.5, True)
    fast = KXQDA(reg_form=reg_form).fit(X, persons, cameras)
    dense = KXQDA(reg_form=reg_form, solver="dense").fit(X, persons, cameras)
    assert (fast.solver_, dense.solver_) == ("null", "dense")
    assert fast.n_components_ == dense.n_components_ == 39
    assert relative_error(fast, dense, T) < 1e-6
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-5)


def test_persons_of_one_camera_do_not_stop_it():
    rng = np.random.default_rng(2)
    counts = np.ones((40, 2), dtype=int)
    counts[::5, 0] = 0
    X, persons, cameras, T = sightings(rng, counts, 400, 0.5, True)
    fast = KXQDA().fit(X, persons, cameras)
    assert fast.solver_ == "null"
    assert relative_error(fast, KXQDA(solver="dense").fit(X, persons, cameras), T) < 1e-6


def test_refinement_covers_the_directions_that_were_dropped():
    """One step with the wanted columns alone stopped at 6e-6 here: the rest must stay in."""
    rng = np.random.default_rng(3)
    X, persons, cameras, _ = sightings(rng, np.ones((6, 3), dtype=int), 100, 1.0, True)
    settings_ = {"width": 100.0, "reg": 3e-8}
    K = KXQDA(**settings_).fit(X, persons, cameras).kernel_.fit_matrix(X)
    pairs = CrossCameraPairs(persons, cameras)
    pencil = _null_space._Pencil(K, pairs, 3e-8, pairs.similar.eigenbasis())
    mu, ritz = pencil.rayleigh_ritz(pencil.start())
    changes = []
    for _ in range(3):
        changes.append(pencil.errors(ritz, mu, 5)[0])
        mu, ritz = pencil.rayleigh_ritz(pencil.refined(ritz, mu, 5))
    assert changes[0] > 10 * changes[1] > 100 * changes[2]
    dense = KXQDA(**settings_, solver="dense").fit(X, persons, cameras)
    np.testing.assert_allclose(mu[:5], dense.eigenvalues_, rtol=1e-9)


# Where it cannot answer (section 6 of the solver's derivation), dense does.


def falls_back(X, persons, cameras, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KXQDA(**parameters).fit(X, persons, cameras).solver_ == "dense"


@pytest.fixture
def usual():
    rng = np.random.default_rng(4)
    return sightings(rng, np.full((30, 2), 2), 300, 0.5, True)[:3]


def test_the_usual_case_is_fast(usual):
    assert not falls_back(*usual)


@pytest.mark.parametrize("reg", [1e-3, 1e-1, 10.0])
def test_lambda_that_is_not_small_falls_back(usual, reg):
    assert falls_back(*usual, reg=reg)


def test_equal_images_fall_back(usual):
    X, persons, cameras = usual
    X = X.copy()
    X[1] = X[0]  # same person, same camera: K_FF is singular
    assert falls_back(X, persons, cameras)


def test_equal_images_across_cameras_fall_back(usual):
    X, persons, cameras = usual
    first = [np.flatnonzero((persons == 0) & (cameras == camera))[0] for camera in (0, 1)]
    X = X.copy()
    X[first[0]] = X[first[1]]
    assert falls_back(X, persons, cameras)


@pytest.mark.parametrize("width", [1e4, 1e6])
def test_very_wide_kernels_fall_back(usual, width):
    assert falls_back(*usual, width=width)


def test_few_dimensions_fall_back():
    rng = np.random.default_rng(5)
    X, persons, cameras, _ = sightings(rng, np.full((60, 2), 2), 8, 0.5, True)
    assert falls_back(X, persons, cameras)


def test_more_directions_than_persons_fall_back():
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 5, size=(30, 2))
    X, persons, cameras, _ = sightings(rng, counts, 300, 0.5, True)
    pairs = CrossCameraPairs(persons, cameras)
    assert pairs.max_components() > 30
    assert falls_back(X, persons, cameras)


def test_lambda_below_the_round_off_of_dense_falls_back(usual):
    assert falls_back(*usual, reg=1e-12)


def test_a_kernel_that_is_not_positive_definite_gets_no_answer(usual):
    X, persons, cameras = usual
    pairs = CrossCameraPairs(persons, cameras)
    assert solve_in_null_space(-(X @ X.T), pairs, 1e-7, 29) is None
    assert solve_in_null_space(np.full((len(X),) * 2, np.nan), pairs, 1e-7, 29) is None
