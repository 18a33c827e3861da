from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from resight import MFA
from resight.errors import InputError


def test_equals_the_published_code(reference):
    learner = MFA(pca=100).fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(np.sqrt(D), "mfa") < 1e-8


def joined(D2, allowed, k):
    """Pairs in which either is among the k nearest allowed of the other, one by one."""
    chosen = np.zeros_like(allowed)
    for i in range(len(D2)):
        possible = np.flatnonzero(allowed[i])
        chosen[i, possible[np.argsort(D2[i, possible])][:k]] = True
    return chosen | chosen.T


@pytest.mark.parametrize(("within", "between"), [(None, None), (2, None), (None, 4), (1, 3)])
def test_solves_the_definition_pair_by_pair(sample, within, between):
    data = sample(n_persons=8, n_features=5)
    n, reg = len(data.X), 0.1
    D2 = ((data.X[:, None] - data.X[None]) ** 2).sum(axis=2)
    same = data.persons[:, None] == data.persons[None]
    alike = joined(D2, same & ~np.eye(n, dtype=bool), within or n)
    unlike = joined(D2, ~same, between or n)

    def scatter(graph):
        pairs = np.argwhere(np.triu(graph, 1))
        differences = data.X[pairs[:, 0]] - data.X[pairs[:, 1]]
        return differences.T @ differences

    values, V = scipy.linalg.eigh(scatter(unlike), scatter(alike) + reg * np.eye(5))
    V = V[:, ::-1][:, :3] / np.linalg.norm(V[:, ::-1][:, :3], axis=0)
    learner = MFA(n_components=3, pca="full", within_neighbors=within, between_neighbors=between)
    learner.fit(data.X, data.persons)
    np.testing.assert_allclose(learner.eigenvalues_, values[::-1][:3], rtol=1e-9)
    embedded = data.X @ V
    expected = ((embedded[:, None] - embedded[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(learner.distances(data.X, data.X), expected, atol=1e-8)


def test_directions_have_unit_length(sample):
    data = sample()
    learner = MFA(n_components=4).fit(data.X, data.persons)
    np.testing.assert_allclose(np.linalg.norm(learner.components_, axis=0), 1.0)


def test_directions_that_tell_nobody_apart_are_dropped(sample):
    """One neighbour of three persons on a line: the penalty graph has rank one."""
    X = np.array([[0.0, 0], [0, 1], [5, 0], [5, 1]])
    learner = MFA(pca="full", between_neighbors=1, n_components=2).fit(X, [0, 0, 1, 1])
    assert learner.n_components_ == 1


def test_without_a_regulariser_few_sightings_are_refused(sample):
    data = sample(n_persons=4, n_features=30, most=1)
    with pytest.raises(InputError, match="larger reg"):
        MFA(reg=0.0).fit(data.X, data.persons)


def test_too_many_principal_components(sample):
    data = sample()
    with pytest.raises(InputError, match=r"pca=7 .* at most 6"):
        MFA(pca=7).fit(data.X, data.persons)


@pytest.mark.parametrize("name", ["within_neighbors", "between_neighbors"])
def test_no_neighbour_is_refused(sample, name):
    data = sample()
    with pytest.raises(ValueError, match=name):
        MFA(**{name: 0}).fit(data.X, data.persons)
