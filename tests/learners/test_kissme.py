from __future__ import annotations

import itertools

import numpy as np
import pytest

from pairs_kit import fit_listed
from resight import KISSME
from resight.errors import InputError

DRAWN = [("kissme", 100, {}), ("kissme34", 34, {})]
DRAWN += [("kissme_reg", 100, {"reg": 0.1, "dissimilar_weight": 0.1})]


@pytest.mark.parametrize(("method", "pca", "options"), DRAWN)
def test_equals_the_published_code_on_drawn_pairs(reference, method, pca, options):
    learner = KISSME(pca=pca, **options)
    fit_listed(learner, reference.X, reference.similar, reference.dissimilar)
    D = learner.distances(reference.queries, reference.gallery)
    # The published code lifts negative eigenvalues to 1e-6 where the projection has 0.
    assert reference.error_of(D, method) < (1e-6 if "reg" not in options else 1e-9)


@pytest.mark.parametrize(("method", "pca"), [("kissme_all", 100), ("kissme34_all", 34)])
def test_equals_the_published_code_on_all_pairs(reference, method, pca):
    learner = KISSME(pca=pca).fit(reference.X, reference.persons, reference.cameras)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(D, method) < 1e-6


def pairs_across_cameras(sample):
    similar, dissimilar = [], []
    for i, j in itertools.combinations(range(len(sample.X)), 2):
        if sample.cameras[i] != sample.cameras[j]:
            same = sample.persons[i] == sample.persons[j]
            (similar if same else dissimilar).append((i, j))
    return np.array(similar), np.array(dissimilar)


def test_closed_form_is_the_listed_pairs(sample):
    data = sample()
    listed = fit_listed(KISSME(pca=4), data.X, *pairs_across_cameras(data))
    closed = KISSME(pca=4).fit(data.X, data.persons, data.cameras)
    np.testing.assert_allclose(closed.metric_, listed.metric_, rtol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_metric_is_the_definition_without_pca(sample, weight):
    data = sample(n_persons=20, n_features=4)

    def covariance(pairs):
        differences = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
        return differences.T @ differences / len(differences)

    C_S, C_D = (covariance(pairs) for pairs in pairs_across_cameras(data))
    M = np.linalg.inv(C_S) - weight * np.linalg.inv(C_D)
    learner = KISSME(pca="full", dissimilar_weight=weight, psd=False)
    learner.fit(data.X, data.persons, data.cameras)
    difference = data.X[3] - data.X[7]
    D = learner.distances(data.X[3:4], data.X[7:8])
    np.testing.assert_allclose(D[0, 0], difference @ M @ difference, rtol=1e-9)


def hard(sample):
    """Fewer sightings than it takes to see that every direction helps."""
    data = sample(n_persons=12, n_features=8, most=2, seed=3)
    noise = np.random.default_rng(1).normal(size=data.X.shape)
    return data.X + 2 * noise, data.persons, data.cameras


def test_without_projection_distances_may_be_negative_and_there_is_no_embedding(sample):
    learner = KISSME(pca=7, psd=False).fit(*hard(sample))
    assert np.linalg.eigvalsh(learner.metric_)[0] < 0
    X = hard(sample)[0]
    assert learner.distances(X, X).min() < 0
    with pytest.raises(InputError, match=r"psd=False.*negative eigenvalues.*distances\(\)"):
        learner.transform(X)


def test_projection_is_the_nearest_semidefinite_metric(sample):
    X, persons, cameras = hard(sample)
    learner = KISSME(pca=7).fit(X, persons, cameras)
    values, vectors = np.linalg.eigh(learner.metric_)
    assert values[0] < 0
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    free = KISSME(pca=7, psd=False).fit(X, persons, cameras)
    free.metric_ = positive
    D = free.distances(X, X)
    np.testing.assert_allclose(learner.distances(X, X), D, atol=1e-9 * D.max())


def test_fewer_pairs_than_dimensions_name_the_regulariser(sample):
    data = sample(n_persons=4, n_features=30, most=1)
    with pytest.raises(InputError, match=r"4 similar pairs.*7 principal components.*reg=0\.1"):
        KISSME(pca=7).fit(data.X, data.persons, data.cameras)
    KISSME(pca=7, reg=0.1).fit(data.X, data.persons, data.cameras)


def test_auto_stays_below_what_the_pairs_can_fill(sample):
    data = sample(n_persons=8, n_features=30, most=1)
    assert KISSME().fit(data.X, data.persons, data.cameras).n_pca_ == 4
    assert KISSME(reg=0.1).fit(data.X, data.persons, data.cameras).n_pca_ == 15


def test_too_many_principal_components(sample):
    data = sample()
    with pytest.raises(InputError, match=r"pca=7 .* at most 6"):
        KISSME(pca=7).fit(data.X, data.persons, data.cameras)


def test_identical_sightings_of_each_person(sample):
    data = sample(most=1)
    with pytest.raises(InputError, match="no inverse"):
        KISSME().fit(data.X[:10][data.persons % 10], data.persons, data.cameras)
