"""k-XQDA in the space of the pairs: the plain definition in other coordinates, and its guard."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from pairs_kit import draw_counts, relative_error, sightings
from resight import KXQDA
from resight.errors import InputError
from resight.learners import _kernel_pencil, _pair_solvers, _solvers
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pair_solvers import directions, rough_directions
from resight.learners._pair_space import PairPencil, PairSpace

AT_HAND = 60  # sightings: from here to four times as many


@pytest.fixture(autouse=True)
def small_sets_too(monkeypatch):
    """Let sets of any size take this path, whatever it costs."""
    monkeypatch.setattr(_kernel_pencil, "PAIRS_FROM", 1)


@pytest.fixture
def only_at_hand(monkeypatch):
    """Take it only where the directions that stand out are all, as in sets that are not large."""
    monkeypatch.setattr(_kernel_pencil, "PAIRS_FROM", AT_HAND)


def scene(seed=0, kind="unequal", n_persons=30, n_cameras=3, n_features=60):
    rng = np.random.default_rng(seed)
    counts = draw_counts(rng, kind, n_persons, n_cameras)
    X, persons, cameras, T = sightings(rng, counts, n_features, 0.7, True)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    return X, T, K, persons, cameras


def listed(persons, cameras, same):
    """Laplacian of the pairs, one after the other."""
    L = np.zeros((len(persons), len(persons)))
    for i in range(len(persons)):
        for j in range(i):
            across = cameras is None or cameras[i] != cameras[j]
            if across and (persons[i] == persons[j]) == same:
                e = np.zeros(len(persons))
                e[i], e[j] = 1, -1
                L += np.outer(e, e)
    return L


@pytest.mark.parametrize("with_cameras", [True, False])
@pytest.mark.parametrize("kind", ["unequal", "one camera only"])
def test_both_graphs_are_diagonal_in_these_coordinates(kind, with_cameras):
    _, _, K, persons, cameras = scene(kind=kind, n_persons=12)
    cameras = cameras if with_cameras else None
    space = PairSpace(K, CrossCameraPairs(persons, cameras))
    T = space.enter(np.eye(len(K)))
    s = np.concatenate([np.zeros(space.n_null), space.s])
    np.testing.assert_allclose(T.T @ (s[:, None] * T), listed(persons, cameras, True), atol=1e-9)
    H_T = space.times_h(T)
    np.testing.assert_allclose(H_T.T @ H_T, listed(persons, cameras, False), atol=1e-9)
    np.testing.assert_allclose(space.leave(K), T.T @ K, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["unequal", "one camera only", "few with more"]),
    n_cameras=st.sampled_from([2, 3, 4, None]),
    n_persons=st.integers(4, 12),
)
def test_labels_alone_bound_the_number_of_directions(seed, kind, n_cameras, n_persons):
    counts = draw_counts(np.random.default_rng(seed), kind, n_persons, n_cameras or 3)
    persons, cameras = (np.repeat(of, counts.ravel()) for of in np.indices(counts.shape))
    pairs = CrossCameraPairs(persons, None if n_cameras is None else cameras)
    similar, dissimilar = (listed(persons, pairs.cameras, same) for same in (True, False))
    D = np.diag((similar + dissimilar).diagonal() + (n_cameras is None))
    assume(np.linalg.eigvalsh(D - similar).min() > 1e-9)  # else there are no such coordinates
    values = np.linalg.eigvalsh(dissimilar / pairs.n_dissimilar - similar / pairs.n_similar)
    expected = int((values > 1e-9 * np.abs(values).max()).sum())
    assert PairSpace(np.eye(len(persons)), pairs).bound == expected


def test_sightings_of_hardly_more_than_one_person_take_the_dense_path():
    """Most pairs are similar: D - L_S is not positive."""
    rng = np.random.default_rng(0)
    counts = np.array([[3, 3], [1, 0], [0, 1]])
    X, persons, cameras, _ = sightings(rng, counts, 20, 0.7, True)
    pairs, K = CrossCameraPairs(persons, cameras), X @ X.T + np.eye(len(X))
    with pytest.raises(np.linalg.LinAlgError):
        PairSpace(K, pairs)
    assert KernelPencil(K, pairs).solve(1e-3, "kernel")[2] == "dense"


@pytest.mark.parametrize("counts", [(1, 1), (2, 2), (2, 3), (1, 1, 1)])
def test_equal_counts_allow_one_direction_less_than_persons(counts):
    persons = np.repeat(np.arange(20), sum(counts))
    cameras = np.tile(np.repeat(np.arange(len(counts)), counts), 20)
    assert PairSpace(np.eye(len(persons)), CrossCameraPairs(persons, cameras)).bound == 19


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("with_cameras", [True, False])
def test_the_operator_has_the_eigenvalues_and_directions_of_the_pencil(power, with_cameras):
    _, _, K, persons, cameras = scene()
    pairs = CrossCameraPairs(persons, cameras if with_cameras else None)
    reg = 1e-3
    A = K @ pairs.mean_dissimilar(K)
    B = K @ pairs.mean_similar(K) + reg * (K if power == 1 else np.eye(len(K)))
    mu, Theta = eigh((A + A.T) / 2, (B + B.T) / 2)
    pencil = PairPencil(PairSpace(K, pairs), reg, power, keep=False)
    operator, held = pencil.apply(np.eye(len(K)))
    np.testing.assert_allclose(np.linalg.eigvalsh(operator), mu, atol=1e-8 * mu[-1])
    values, Y = np.linalg.eigh(operator)
    theta = pencil.theta(held @ Y[:, -5:]) / np.sqrt(values[-5:])
    np.testing.assert_allclose(np.abs(theta), np.abs(Theta[:, -5:]), rtol=1e-4, atol=1e-5)
    none = np.empty((len(K), 0))
    np.testing.assert_allclose(
        np.tril(pencil.beside(none, none)[0]), np.tril(operator), atol=1e-6 * mu[-1]
    )


@pytest.mark.parametrize("pairs_from", [1, AT_HAND])
@settings(
    deadline=None,
    max_examples=200,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["one each", "equal", "unequal", "one camera only", "few with more"]),
    n_persons=st.integers(3, 40),
    n_cameras=st.sampled_from([2, 3, 6, None]),
    n_features=st.sampled_from([8, 30, 100, 400]),
    noise=st.sampled_from([0.2, 0.5, 1.0, 2.0]),
    kernel=st.sampled_from(["rbf", "rbf", "linear", "poly", "exp"]),
    unit=st.booleans(),
    width=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
    log_reg=st.floats(-10, -1),
    reg_form=st.sampled_from(["identity", "relative", "kernel"]),
    by_band=st.booleans(),
)
def test_it_is_within_a_millionth_of_dense(
    monkeypatch, pairs_from, seed, kind, n_persons, n_cameras, n_features, noise, kernel, unit,
    width, log_reg, reg_form, by_band,
):  # fmt: skip
    monkeypatch.setattr(_solvers, "_BAND_FROM", 1 if by_band else np.inf)
    monkeypatch.setattr(_kernel_pencil, "PAIRS_FROM", pairs_from)
    if reg_form == "kernel" or pairs_from == 1:  # beyond that dense loses digits on few sightings
        log_reg, width, unit = max(log_reg, -7.0), min(width, 10.0), True
    if reg_form == "kernel":  # below that dense shows its ridge of round-off, see the next test
        log_reg = max(log_reg, -4.0)
    rng = np.random.default_rng(seed)
    counts = draw_counts(rng, kind, n_persons, n_cameras or 2)
    X, persons, cameras, T = sightings(rng, counts, n_features, noise, unit)
    given_cameras = None if n_cameras is None else cameras
    learner = KXQDA(kernel=kernel, width=width, reg=10.0**log_reg, reg_form=reg_form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of regularisers too large or too small
        try:
            dense = KXQDA(**{**learner.get_params(), "solver": "dense"})
            dense.fit(X, persons, given_cameras)
        except InputError:
            return
        learner.fit(X, persons, given_cameras)
    assert relative_error(learner, dense, T) < 1e-6


@pytest.mark.parametrize("reg", [1e-5, 1e-6, 1e-7])
def test_with_a_small_multiple_of_the_kernel_it_is_the_plain_definition(reg):
    _, _, K, persons, cameras = scene(n_features=200)  # K is far from singular: no ridge is needed
    pairs = CrossCameraPairs(persons, cameras)
    A, B = K @ pairs.mean_dissimilar(K), K @ pairs.mean_similar(K) + reg * K
    expected, V = eigh((A + A.T) / 2, (B + B.T) / 2)
    mu, Theta, path = KernelPencil(K, pairs).solve(reg, "kernel")
    assert path == "pairs"
    weighted = K @ Theta * np.sqrt(1 - 1 / mu)
    V = K @ V[:, -len(mu) :] * np.sqrt(1 - 1 / expected[-len(mu) :])
    metric, plain = weighted @ weighted.T, V @ V.T
    np.testing.assert_allclose(metric, plain, atol=1e-7 * np.abs(plain).max())


def test_unequal_counts_take_it_and_its_directions_are_orthonormal():
    X, T, K, persons, cameras = scene(n_persons=40)
    learner = KXQDA(reg=1e-5).fit(X, persons, cameras)
    assert learner.solver_ == "pairs"
    assert (
        relative_error(learner, KXQDA(reg=1e-5, solver="dense").fit(X, persons, cameras), T) < 1e-6
    )
    pairs = CrossCameraPairs(persons, cameras)
    mu, Theta, _ = KernelPencil(K, pairs).solve(1e-5, "identity")
    within = Theta.T @ (K @ pairs.mean_similar(K @ Theta) + 1e-5 * Theta)
    between = Theta.T @ (K @ pairs.mean_dissimilar(K @ Theta))
    # Errors of A count relative to its largest eigenvalue; psi = A y / sqrt(mu).
    scale = np.sqrt(np.outer(mu, mu)) / mu[0]
    np.testing.assert_allclose(scale * within, np.diag(mu / mu[0]), atol=1e-6)
    np.testing.assert_allclose(scale * between, np.diag(mu**2 / mu[0]), atol=1e-6 * mu[0])


def test_order_of_sightings_and_names_of_cameras_do_not_matter():
    X, T, _, persons, cameras = scene()
    order = np.random.default_rng(1).permutation(len(X))
    first = KXQDA(reg=1e-5).fit(X, persons, cameras)
    second = KXQDA(reg=1e-5).fit(X[order], persons[order], 2 - cameras[order])
    assert first.solver_ == second.solver_ == "pairs"
    assert relative_error(first, second, T) < 1e-6


@pytest.mark.parametrize(
    ("form", "reg", "path"), [("identity", 1e-7, "krylov"), ("kernel", 1e-3, "krylov")]
)
def test_the_leading_directions_are_those_of_the_whole(form, reg, path):
    X, T, _, persons, cameras = scene(n_persons=60, n_features=200)
    few = KXQDA(reg=reg, reg_form=form, n_components=8).fit(X, persons, cameras)
    dense = KXQDA(reg=reg, reg_form=form, n_components=8, solver="dense").fit(X, persons, cameras)
    assert (few.solver_, few.n_components_) == (path, 8)
    np.testing.assert_allclose(few.eigenvalues_, dense.eigenvalues_, rtol=1e-6)
    assert relative_error(few, dense, T) < 1e-6


def test_one_space_serves_many_regularisers():
    _, _, K, persons, cameras = scene()
    shared = KernelPencil(K, CrossCameraPairs(persons, cameras))
    for form, reg in (("identity", 1e-3), ("kernel", 1e-3), ("kernel", 1e-5), ("identity", 1e-5)):
        mu, Theta, path = shared.solve(reg, form, keep=True)
        alone = KernelPencil(K, shared.pairs).solve(reg, form)
        np.testing.assert_array_equal(mu, alone[0])
        np.testing.assert_array_equal(Theta, alone[1])
        assert path == alone[2] == ("dense" if (form, reg) == ("kernel", 1e-3) else "pairs")


def test_residuals_that_are_too_large_leave_it_to_dense(monkeypatch):
    X, _, K, persons, cameras = scene()
    pencil = PairPencil(PairSpace(K, CrossCameraPairs(persons, cameras)), 1e-5, 2, keep=True)
    with monkeypatch.context() as patch:
        patch.setattr(_pair_solvers, "_ACCEPTED", 1e-20)
        assert directions(pencil) is None
        assert directions(pencil, 5) is None
        learner = KXQDA(reg=1e-5).fit(X, persons, cameras)
    assert learner.solver_ == "dense"


def test_a_kernel_that_is_not_one_is_left_to_dense():
    _, _, K, persons, cameras = scene()
    pairs = CrossCameraPairs(persons, cameras)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        PairPencil(PairSpace(-K, pairs), 1e-5, 1, keep=False)


# Sets that are not large: where others than the directions that stand out may be above 1, or
# where these are not found exactly, dense answers.


@pytest.mark.parametrize("counts", [(2, 2), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize("reg_form", ["identity", "relative"])
def test_the_papers_setting_is_fast(only_at_hand, counts, reg_form):
    rng = np.random.default_rng(1)
    X, persons, cameras, T = sightings(rng, np.tile(counts, (40, 1)), 400, 0.5, True)
    fast = KXQDA(reg_form=reg_form).fit(X, persons, cameras)
    dense = KXQDA(reg_form=reg_form, solver="dense").fit(X, persons, cameras)
    assert (fast.solver_, dense.solver_) == ("pairs", "dense")
    assert fast.n_components_ == dense.n_components_ == 39
    assert relative_error(fast, dense, T) < 1e-6
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-5)


@pytest.fixture
def usual():
    rng = np.random.default_rng(4)
    return sightings(rng, np.full((30, 2), 2), 300, 0.5, True)[:3]


def taken(X, persons, cameras, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KXQDA(**parameters).fit(X, persons, cameras).solver_


def test_the_usual_case_is_fast(only_at_hand, usual):
    assert taken(*usual) == "pairs"


@pytest.mark.parametrize(
    "parameters", [{"reg": 10.0}, {"width": 1e6}, {"reg": 1e-12}], ids=["large", "wide", "small"]
)
def test_lambda_and_widths_far_from_usual_fall_back(only_at_hand, usual, parameters):
    assert taken(*usual, **parameters) == "dense"


def test_more_directions_than_persons_fall_back(only_at_hand):
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 5, size=(30, 2))
    X, persons, cameras, _ = sightings(rng, counts, 300, 0.5, True)
    assert PairSpace(X @ X.T, CrossCameraPairs(persons, cameras)).bound > 30
    assert taken(X, persons, cameras) == "dense"


def test_rough_leading_directions_are_nearly_those_of_the_pencil():
    _, _, K, persons, cameras = scene(n_persons=60)
    pencil = PairPencil(PairSpace(K, CrossCameraPairs(persons, cameras)), 1e-4, 1, keep=False)
    exact = np.linalg.eigvalsh(pencil.apply(np.eye(len(K)))[0])[::-1][:10]
    Theta = rough_directions(pencil, 10)
    A = K @ pencil.space.pairs.mean_dissimilar(K)
    B = K @ pencil.space.pairs.mean_similar(K) + 1e-4 * K
    mu = eigh(*(Theta.T @ M @ Theta for M in (A, B)), eigvals_only=True)[::-1]
    assert Theta.shape == (len(K), 10)
    assert (mu <= exact * (1 + 1e-9)).all()  # Ritz values lie below
    assert mu.sum() >= 0.9 * exact.sum()


def test_fewer_rough_directions_are_found_than_asked_of_few_persons():
    _, _, K, persons, cameras = scene(n_persons=12)
    pencil = PairPencil(PairSpace(K, CrossCameraPairs(persons, cameras)), 1e-4, 1, keep=False)
    Theta = rough_directions(pencil, 40)
    assert np.isfinite(Theta).all()
    assert 5 < Theta.shape[1] <= 12


@pytest.mark.parametrize(
    ("reg", "alike", "far"), [(1e-7, 20, 3.0), (1e-6, 20, 3.0), (1e-7, 40, 5.0)]
)
def test_one_person_far_from_all_others_hides_no_error(reg, alike, far):
    """Blank crops, say: one eigenvalue is 1e5 times all others, but test sightings see these."""
    rng = np.random.default_rng(1)
    X, persons, cameras, T = sightings(rng, rng.integers(1, 4, (110, 2)), 20, 1.0, True)
    blank = rng.normal(size=20)
    X = np.vstack([X, np.tile(blank * far / np.linalg.norm(blank), (alike, 1))])
    labels = np.append(persons, np.full(alike, 110)), np.append(cameras, np.arange(alike) % 2)
    auto, dense = (KXQDA(reg=reg, solver=solver).fit(X, *labels) for solver in ("auto", "dense"))
    assert dense.eigenvalues_[0] > 1e4 * dense.eigenvalues_[1]
    assert relative_error(auto, dense, T) <= 1e-6


def test_descriptors_of_zeros_are_no_trouble():
    rng = np.random.default_rng(0)
    X, persons, cameras, T = sightings(rng, rng.integers(1, 4, (40, 2)), 300, 0.5, True)
    X[::25] = 0.0
    setting = {"kernel": "linear", "reg": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auto, dense = (
            KXQDA(**setting, solver=solver).fit(X, persons, cameras) for solver in ("auto", "dense")
        )
    assert auto.solver_ == "pairs"
    assert relative_error(auto, dense, T) <= 1e-6


@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_a_matrix_that_is_no_kernel_is_refused(solver):
    _, _, K, persons, cameras = scene()
    learner = KXQDA(kernel="precomputed", reg=0.1, reg_form="kernel", solver=solver)
    with pytest.raises(InputError, match="larger reg"):
        learner.fit(K - 0.3 * np.eye(len(K)), persons, cameras)


def test_all_copies_of_an_eigenvalue_are_found():
    """A Krylov space of 32 vectors holds at most 32 directions of one eigenvalue; here are 59."""
    counts = np.concatenate([np.full((60, 2), 10), [[2, 11], [3, 9], [4, 4]]])
    persons, cameras = (np.repeat(of, counts.ravel()) for of in np.indices(counts.shape))
    K = np.eye(len(persons)) + 0.3 * (persons[:, None] == persons)
    pencil = KernelPencil(K, CrossCameraPairs(persons, cameras))
    mu, _, path = pencil.solve(0.01, "kernel", keep=True)
    expected, _, _ = pencil.solve(0.01, "kernel", "dense")
    assert path == "krylov"
    assert len(mu) == 59 < PairSpace(K, pencil.pairs).bound
    np.testing.assert_allclose(mu, expected, rtol=1e-9)


@pytest.mark.parametrize("counts", [[(60, 60), (30, 30), (30, 30)], [(4, 4), (2, 2), (2, 2)]])
def test_half_of_all_sightings_of_one_person_take_the_dense_path(counts):
    """D - L_S is singular: its factor and the bound of labels would be round-off."""
    rng = np.random.default_rng(0)
    X, persons, cameras, _ = sightings(rng, np.array(counts), 400, 0.7, True)
    pairs = CrossCameraPairs(persons, cameras)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        PairSpace(X @ X.T, pairs)
    learner = KXQDA(reg=1e-5).fit(X, persons, cameras)
    assert learner.solver_ == "dense"
    assert learner.n_components_ > 1


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_between_close_eigenvalues_is_that_of_dense(seed):
    rng = np.random.default_rng(seed)
    counts = draw_counts(rng, "one camera only", 150, 2)
    X, persons, cameras, T = sightings(rng, counts, 300, 3.0, True)
    setting = {"width": 0.1, "reg": 2e-3, "reg_form": "relative", "n_components": 1}
    fast = KXQDA(**setting).fit(X, persons, cameras)
    dense = KXQDA(solver="dense", **setting).fit(X, persons, cameras)
    assert relative_error(fast, dense, T) < 1e-6


def test_nothing_above_1_is_left_to_dense_at_once(monkeypatch):
    _, _, K, persons, cameras = scene(n_persons=40)
    monkeypatch.setattr(_pair_solvers, "_decomposed", None)  # it would fail if it were called
    mu, _, path = KernelPencil(K, CrossCameraPairs(persons, cameras)).solve(100.0, "kernel")
    assert path == "dense"
    assert len(mu) == 1
    assert mu[0] < 1
