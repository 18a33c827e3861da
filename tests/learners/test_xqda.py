"""XQDA against published runs and its definition in feature space."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from resight import XQDA
from resight.errors import InputError
from resight.learners.xqda import span_coordinates


def test_svd_equals_the_published_code(reference):
    learner = XQDA(solver="svd").fit(reference.X, reference.persons, reference.cameras)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(D, "xqda") < 1e-9


def covariances(data):
    sums, counts = np.zeros((2, data.X.shape[1], data.X.shape[1])), np.zeros(2)
    for i in range(len(data.X)):
        for j in range(i):
            if data.cameras[i] != data.cameras[j]:
                kind = int(data.persons[i] != data.persons[j])
                sums[kind] += np.outer(data.X[i] - data.X[j], data.X[i] - data.X[j])
                counts[kind] += 1
    return sums[0] / counts[0], sums[1] / counts[1]


@pytest.mark.parametrize("n_features", [5, 80])  # primal, and dual with more features than rows
@pytest.mark.parametrize("reg", [1e-3, 1e-1])
def test_eigh_is_the_definition_in_feature_space(sample, n_features, reg):
    data = sample(n_persons=12, n_features=n_features)
    learner = XQDA(reg=reg).fit(data.X, data.persons, data.cameras)
    similar, dissimilar = covariances(data)
    mu, V = eigh(dissimilar, similar + reg * np.eye(n_features))
    mu, V = mu[mu > 1], V[:, mu > 1]
    M = (V * (1 - 1 / mu)) @ V.T
    test = sample(n_persons=6, n_features=n_features, seed=5).X
    differences = test[:4, None] - test[None, 4:9]
    expected = np.einsum("abi,ij,abj->ab", differences, M, differences)
    np.testing.assert_allclose(learner.distances(test[:4], test[4:9]), expected, rtol=1e-9)
    np.testing.assert_allclose(learner.eigenvalues_, mu[::-1], rtol=1e-9)


@pytest.mark.parametrize("solver", ["eigh", "svd"])
def test_more_features_than_sightings_change_nothing(sample, solver):
    """Rotated into a larger space the problem is the same, though solved from inner products."""
    data, test = sample(n_persons=12, n_features=10), sample(6, 10, seed=5).X
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 10)))[0]
    narrow = XQDA(solver=solver).fit(data.X, data.persons, data.cameras)
    wide = XQDA(solver=solver).fit(data.X @ rotation.T, data.persons, data.cameras)
    expected = narrow.distances(test[:4], test[4:])
    D = wide.distances(test[:4] @ rotation.T, test[4:] @ rotation.T)
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_equal_rows_in_many_dimensions(sample):
    """The matrix of inner products is singular; its rank is found."""
    data = sample(n_persons=12, n_features=80)
    X = data.X - data.X.mean(axis=0)
    X[1] = X[0]
    learner = XQDA().fit(X, data.persons, data.cameras)
    assert np.isfinite(learner.distances(X, X)).all()
    assert learner.score(X, data.persons, cameras=data.cameras) > 0.8


def test_coordinates_keep_inner_products():
    X = np.random.default_rng(0).normal(size=(9, 30))
    X[4] = X[2]
    coordinates, lift = span_coordinates(X @ X.T)
    assert coordinates.shape == (9, 8)
    np.testing.assert_allclose(coordinates @ coordinates.T, X @ X.T, atol=1e-10)
    basis = X.T @ lift
    np.testing.assert_allclose(basis.T @ basis, np.eye(8), atol=1e-10)
    np.testing.assert_allclose(X @ basis, coordinates, atol=1e-10)


def test_an_indefinite_metric_has_no_embedding(sample):
    data = sample()
    learner = XQDA(solver="svd").fit(data.X, data.persons, data.cameras)
    with pytest.raises(InputError, match=r"indefinite.*distances.*solver='eigh'"):
        learner.transform(data.X)
    D = learner.distances(data.X[:3], data.X[3:5])
    difference = (data.X[:3, None] - data.X[None, 3:5]) @ learner.components_
    expected = np.einsum("abi,ij,abj->ab", difference, learner.metric_, difference)
    np.testing.assert_allclose(D, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_fewer_components_are_the_leading_ones(sample):
    data = sample(n_persons=12, n_features=80)
    full = XQDA().fit(data.X, data.persons, data.cameras)
    few = XQDA(n_components=2).fit(data.X, data.persons, data.cameras)
    assert few.n_components_ == 2
    np.testing.assert_allclose(few.components_, full.components_[:, :2])


def test_reg_too_small_for_the_features(sample):
    data = sample(n_persons=12, n_features=80)
    with pytest.raises(InputError, match=r"too small.*Give a reg of at least"):
        XQDA(reg=1e-30).fit(1e4 * data.X, data.persons, data.cameras)


def test_no_direction_above_one_warns(sample):
    data = sample()
    with pytest.warns(RuntimeWarning, match="not above 1"):
        XQDA(reg=1e9).fit(data.X, data.persons, data.cameras)
