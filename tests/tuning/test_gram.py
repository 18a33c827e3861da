from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners.normalizer import BlockNormalizer
from resight.registry import LEARNERS, learner_spec
from resight.tuning.gram import GramSpace, fit_in_gram_space

BLOCKS = (30, 50)
N_PEOPLE = 24


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    persons = np.tile(np.arange(2 * N_PEOPLE), 2)
    cameras = np.repeat(["A", "B"], 2 * N_PEOPLE)
    X = rng.normal(size=(2 * N_PEOPLE, 80))[persons] + 0.7 * rng.normal(size=(len(persons), 80))
    X += 0.5 * rng.normal(size=80) * (cameras == "B")[:, None] + 2.0  # a mean far from zero
    train = np.flatnonzero(persons < N_PEOPLE)
    test = np.flatnonzero(persons >= N_PEOPLE)
    return X.astype(np.float32), persons, cameras, train, test


def plain_distances(name, data, **params):
    """The same by normaliser and learner on features."""
    X, persons, cameras, train, test = data
    spec = learner_spec(name)
    rows = X.astype(np.float64)
    if spec.normalize:
        rows = BlockNormalizer(BLOCKS).fit(rows[train]).transform(rows)
    learner = spec.make(**params).fit(rows[train], persons[train], cameras[train])
    return learner.distances(rows[test], rows[test])


def gram_distances(name, data, precision, **params):
    X, persons, cameras, train, test = data
    spec = learner_spec(name)
    space = GramSpace([X], [BLOCKS], precision)
    products = space.products(train, test, normalize=spec.normalize)
    learner, rows = fit_in_gram_space(spec.make(**params), products, persons[train], cameras[train])
    return learner.distances(rows, rows)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "exp"])
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-6), ("float32", 2e-5)])
def test_kxqda_equals_normaliser_and_learner(data, kernel, precision, tolerance):
    params = {"kernel": kernel, "reg": 1e-3, "reg_form": "relative"}
    plain = plain_distances("kxqda", data, **params)
    fast = gram_distances("kxqda", data, precision, **params)
    assert np.abs(fast - plain).max() <= tolerance * plain.max()


@pytest.mark.parametrize(
    "name", sorted(set(LEARNERS) - {"auto", "euclidean", "kxqda", "lmnn", "itml"})
)
def test_every_learner_works_on_inner_products_alone(data, name):
    plain = plain_distances(name, data)
    fast = gram_distances(name, data, "float64")
    assert np.abs(fast - plain).max() <= 1e-5 * np.abs(plain).max()


def test_products_between_test_rows_give_euclidean_distances(data):
    X, _, _, train, test = data
    products = GramSpace([X], [BLOCKS], "float64").products(train, test, between_test=True)
    rows = BlockNormalizer(BLOCKS).fit(X[train].astype(float)).transform(X[test].astype(float))
    np.testing.assert_allclose(products.test_self, rows @ rows.T, atol=1e-10)
    np.testing.assert_allclose(products.test_squares, (rows**2).sum(axis=1), atol=1e-10)


def test_a_row_that_is_the_training_mean_stays_zero(data):
    X, _, _, train, test = data
    changed = X.astype(np.float64)
    changed[test[0], :30] = changed[train, :30].mean(axis=0)
    products = GramSpace([changed], [BLOCKS], "float64").products(train, test)
    assert products.test_squares[0] == pytest.approx(1.0)  # one of the two blocks is left
    assert np.isfinite(products.test).all()


def test_descriptors_side_by_side_are_joined_block_by_block(data):
    X, _, _, train, test = data
    whole = GramSpace([X], [BLOCKS]).products(train, test)
    parts = [GramSpace([X[:, :30]]), GramSpace([X[:, 30:]])]
    joined = GramSpace.joined(parts).products(train, test)
    np.testing.assert_allclose(joined.train, whole.train, atol=1e-12)


def test_not_finite_features_are_refused(data):
    X = data[0].copy()
    X[0, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        GramSpace([X])


@pytest.mark.parametrize("normalize", [True, False])
def test_products_between_strangers_are_not_needed(data, normalize):
    X, _, _, train, test = data
    learned = np.sort(train)
    few = GramSpace([X], [BLOCKS], "float64", trainable=learned)
    whole = GramSpace([X], [BLOCKS], "float64")
    assert few.blocks[0].gram.shape == (len(train), len(X))
    for one in (few, GramSpace.joined(few.descriptors())):
        found = one.products(train[::-1], test, normalize=normalize)
        expected = whole.products(train[::-1], test, normalize=normalize)
        np.testing.assert_allclose(found.train, expected.train, atol=1e-10)
        np.testing.assert_allclose(found.test, expected.test, atol=1e-10)
        np.testing.assert_allclose(found.test_squares, expected.test_squares, rtol=1e-12)
    with pytest.raises(ValueError, match="not formed"):
        few.products(train, test, between_test=True)


def test_kernels_of_features_are_refused_with_those_that_work(data):
    with pytest.raises(InputError, match="linear, rbf, poly, exp"):
        gram_distances("kxqda", data, "float64", kernel="chi2")


def test_float32_products_of_a_nearly_singular_kernel_can_be_regularised_by_it():
    """float32 leaves slightly negative eigenvalues, which lambda K alone cannot lift."""
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(150), 2), np.repeat(["A", "B"], 150)
    looks = rng.normal(size=(150, 12))[persons] @ rng.normal(size=(12, 400))
    X = (looks + 1e-5 * rng.normal(size=(300, 400))).astype(np.float32)
    train, test = np.flatnonzero(persons < 140), np.flatnonzero(persons >= 140)
    products = GramSpace([X]).products(train, test)
    learner = learner_spec("kxqda").make(kernel="linear", reg_form="kernel", reg=1e-2)
    fitted, rows = fit_in_gram_space(learner, products, persons[train], cameras[train])
    assert np.isfinite(fitted.distances(rows, rows)).all()
