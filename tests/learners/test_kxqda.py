"""k-XQDA against published runs, the paper's definition and its invariances."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import eigh

from resight import KXQDA, XQDA
from resight.errors import InputError
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs


@pytest.mark.parametrize("solver", ["auto", "dense"])
@pytest.mark.parametrize(
    ("method", "parameters", "tolerance"),
    [
        ("kxqda_m", {}, 1e-7),
        ("kxqda_m_linear", {"kernel": "linear"}, 1e-7),
        ("kxqda_m_poly2", {"kernel": "poly"}, 1e-6),
    ],
)
def test_equals_the_published_code(reference, method, parameters, tolerance, solver):
    learner = KXQDA(**parameters, solver=solver)
    learner.fit(reference.X, reference.persons, reference.cameras)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(D, method) < tolerance


@pytest.fixture
def data(sample):
    return sample(n_persons=15, n_features=60)


def pencil_by_definition(K, data, cameras):
    """Lambda_S and Lambda_D summed over pairs of kernel columns."""
    sums, counts = np.zeros((2, *K.shape)), np.zeros(2)
    for i in range(len(K)):
        for j in range(i):
            if cameras is None or cameras[i] != cameras[j]:
                kind = int(data.persons[i] != data.persons[j])
                difference = K[i] - K[j]
                sums[kind] += np.outer(difference, difference)
                counts[kind] += 1
    return sums[0] / counts[0], sums[1] / counts[1]


@pytest.mark.parametrize("solver", ["auto", "dense"])
@pytest.mark.parametrize("with_cameras", [True, False])
@pytest.mark.parametrize("reg_form", ["identity", "kernel", "relative"])
def test_equals_the_papers_definition(data, solver, with_cameras, reg_form):
    """Algorithm 1: eigenvalues above 1, then Gamma = (T^T S T)^-1 - (T^T D T)^-1 between k(x)."""
    cameras = data.cameras if with_cameras else None
    reg = 1e-3
    learner = KXQDA(reg=reg, reg_form=reg_form, solver=solver)
    learner.fit(data.X, data.persons, cameras)
    K = np.exp(-((data.X[:, None] - data.X[None]) ** 2).sum(axis=2) * learner.kernel_.gamma_)
    similar, dissimilar = pencil_by_definition(K, data, cameras)
    similar += (
        reg
        * {
            "identity": np.eye(len(K)),
            "kernel": K,
            "relative": np.eye(len(K)) * np.trace(similar) / len(K),
        }[reg_form]
    )
    mu, T = eigh(dissimilar, similar)
    T = T[:, mu > 1]
    gamma = np.linalg.inv(T.T @ similar @ T) - np.linalg.inv(T.T @ dissimilar @ T)
    assert np.linalg.eigvalsh(gamma)[0] > 0  # the projection of the paper has nothing to do
    k = K[:6, None] - K[None, 6:12]
    expected = np.einsum("abi,ij,abj->ab", k, T @ gamma @ T.T, k)
    D = learner.distances(data.X[:6], data.X[6:12])
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-7 * expected.max())
    np.testing.assert_allclose(learner.eigenvalues_, mu[mu > 1][::-1], rtol=1e-7)
    assert learner.n_components_ == (mu > 1).sum()


@pytest.mark.parametrize("solver", ["auto", "dense"])
def test_order_of_cameras_rows_and_persons_does_not_matter(sample, solver):
    for most, seed in ((1, 0), (3, 1)):  # the fast path, and unequal counts
        data, test = sample(15, 60, most, seed), sample(8, 60, 1, 9).X
        parts = (data.X, data.persons, data.cameras)
        expected = KXQDA(solver=solver).fit(*parts).distances(test[:8], test[8:])
        order = np.random.default_rng(2).permutation(len(data.X))
        for X, persons, cameras in (
            (data.X, data.persons, 1 - data.cameras),
            (data.X, 99 - data.persons, data.cameras),
            (data.X[order], data.persons[order], data.cameras[order]),
        ):
            D = KXQDA(solver=solver).fit(X, persons, cameras).distances(test[:8], test[8:])
            assert np.abs(D - expected).max() < 1e-9 * expected.max()


@pytest.mark.parametrize("n_features", [60, 10])
def test_linear_kernel_with_a_kernel_ridge_is_xqda(sample, n_features):
    """lambda I between features is lambda K between kernel columns, K singular or not."""
    data, test = sample(15, n_features), sample(8, n_features, seed=3).X
    kernel = KXQDA(kernel="linear", reg=1e-2, reg_form="kernel")
    linear = XQDA(reg=1e-2)
    for learner in (kernel, linear):
        learner.fit(data.X, data.persons, data.cameras)
    D, expected = (learner.distances(test[:8], test[8:]) for learner in (kernel, linear))
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-7 * expected.max())
    assert kernel.n_components_ == linear.n_components_


def test_the_relative_form_does_not_depend_on_the_scale_of_the_kernel(data):
    K = data.X @ data.X.T
    D = []
    for scale in (1.0, 1e6, 1e-6):
        learner = KXQDA(kernel="precomputed", reg=1e-3, reg_form="relative")
        learner.fit(scale * K, data.persons, data.cameras)
        D.append(learner.distances(scale * K, scale * K))
    for other in D[1:]:
        np.testing.assert_allclose(other / other.max(), D[0] / D[0].max(), atol=1e-8)


def test_fewer_components_are_the_leading_ones(data):
    full = KXQDA(reg=1e-4).fit(data.X, data.persons, data.cameras)
    few = KXQDA(reg=1e-4, n_components=3).fit(data.X, data.persons, data.cameras)
    assert few.n_components_ == 3
    np.testing.assert_array_equal(few.eigenvalues_, full.eigenvalues_[:3])
    np.testing.assert_allclose(few.transform(data.X), full.transform(data.X)[:, :3], atol=1e-9)


def test_embeddings_are_centred_on_the_training_set(data):
    embedding = KXQDA(width=50.0).fit(data.X, data.persons, data.cameras).transform(data.X)
    assert np.abs(embedding.mean(axis=0)).max() < 1e-6 * np.abs(embedding).max()


def test_float32_products_change_little(data, sample):
    test = sample(8, 60, seed=3).X
    double = KXQDA(reg=1e-4).fit(data.X, data.persons, data.cameras)
    single = KXQDA(reg=1e-4, precision="float32").fit(data.X, data.persons, data.cameras)
    expected = double.distances(test[:8], test[8:])
    gap = np.abs(single.distances(test[:8], test[8:]) - expected).max() / expected.max()
    assert 0 < gap < 1e-3


def test_one_pencil_serves_many_regularisers(data):
    K = np.exp(data.X @ data.X.T / 60)
    pairs = CrossCameraPairs(data.persons, data.cameras)
    shared = KernelPencil(K, pairs)
    for reg in (1e-2, 1e-3):
        mu, Theta, path = shared.solve(reg, "identity", "dense", keep=True)
        alone_mu, alone_Theta, _ = KernelPencil(K, pairs).solve(reg, "identity", "dense")
        np.testing.assert_array_equal(mu, alone_mu)
        np.testing.assert_array_equal(Theta, alone_Theta)
        assert path == "dense"


# What it says


def test_no_eigenvalue_above_one_warns_with_advice(data):
    with pytest.warns(RuntimeWarning, match=r"not above 1.*Lower reg.*relative"):
        learner = KXQDA(reg=1e4).fit(data.X, data.persons, data.cameras)
    assert learner.n_components_ == 1
    assert np.isfinite(learner.distances(data.X, data.X)).all()
    with warnings.catch_warnings():  # the advice helps
        warnings.simplefilter("error")
        KXQDA(reg=1e-4, reg_form="relative").fit(data.X, data.persons, data.cameras)


def test_reg_too_small_for_the_kernel_names_the_relative_form(data):
    settings = {"kernel": "poly", "degree": 3, "solver": "dense"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            KXQDA(**settings, reg=1e-13).fit(1e3 * data.X, data.persons, data.cameras)
            told = [str(warning.message) for warning in caught]
        except InputError as error:
            told = [str(error)]
    assert any("reg_form='relative'" in message for message in told)
    KXQDA(**settings, reg=1e-3, reg_form="relative").fit(1e3 * data.X, data.persons, data.cameras)


@pytest.mark.filterwarnings("ignore:reg=")
def test_a_matrix_that_cannot_be_factored_is_an_error_with_advice(data):
    K = data.X @ data.X.T - 1e6 * np.eye(len(data.X))  # indefinite: not a kernel
    K[0] = K[:, 0] = 0.0
    learner = KXQDA(kernel="precomputed", reg=1e-300)
    with pytest.raises(InputError, match=r"too small.*reg_form='relative'"):
        learner.fit(1e6 * K, data.persons, data.cameras)


def test_equal_images_in_both_cameras_are_learned_from(data):
    X = data.X.copy()
    X[data.persons == 0] = X[data.persons == 0][0]
    learner = KXQDA().fit(X, data.persons, data.cameras)
    assert learner.solver_ == "dense"
    assert learner.score(X, data.persons, cameras=data.cameras) > 0.9


@pytest.mark.parametrize("apart", [1e-9, 1e-6, 1e-3])
def test_images_that_are_nearly_equal_need_no_lifted_kernel(apart):
    """The ridge of round-off suffices for a Cholesky factor; what float32 needs would show."""
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(150), 2), np.repeat([0, 1], 150)
    X = rng.normal(size=(150, 100))[persons] + apart * rng.normal(size=(300, 100))
    kernel, linear = KXQDA(kernel="linear", reg=1e-2, reg_form="kernel"), XQDA(reg=1e-2)
    D, expected = (
        learner.fit(X, persons, cameras).distances(X[:40], X[40:80]) for learner in (kernel, linear)
    )
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-9 * expected.max())


@pytest.mark.parametrize(("size", "warned"), [(1.0, False), (100.0, True)])
def test_a_ridge_of_round_off_that_shows_under_lambda_k_is_said(size, warned):
    """The ridge of round-off under lambda K grows with the square of the kernel."""
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(60), 2), np.repeat([0, 1], 60)
    X = rng.normal(size=(60, 200))[persons] + 0.5 * rng.normal(size=(120, 200))
    X *= size / np.linalg.norm(X, axis=1, keepdims=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KXQDA(kernel="poly", reg=1e-6, reg_form="kernel").fit(X, persons, cameras)
    assert ["near or below the round-off" in str(one.message) for one in caught] == [True] * warned
