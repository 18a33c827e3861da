from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from resight import LFDA
from resight.errors import InputError


def test_equals_the_published_code(reference):
    learner = LFDA(pca=100).fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(np.sqrt(D), "lfda") < 1e-8


def scatters(X, persons, n_neighbors):
    """Local scatters summed over all pairs, as the paper defines them."""
    n, d = X.shape
    S_w, S_b = np.zeros((d, d)), np.zeros((d, d))
    scale = np.empty(n)
    for i in range(n):
        own = np.sort(np.linalg.norm(X[persons == persons[i]] - X[i], axis=1))
        scale[i] = own[min(n_neighbors, len(own) - 1)]
    for i in range(n):
        for j in range(n):
            outer = np.outer(X[i] - X[j], X[i] - X[j]) / 2
            if persons[i] != persons[j]:
                S_b += outer / n
                continue
            size = np.sum(persons == persons[i])
            usable = scale[i] * scale[j] > 0
            A = np.exp(-((X[i] - X[j]) ** 2).sum() / (scale[i] * scale[j])) if usable else 0.0
            S_w += A / size * outer
            S_b += A * (1 / n - 1 / size) * outer
    return S_w, S_b


@pytest.mark.parametrize("n_neighbors", [1, 2, 7])
def test_solves_the_definition_pair_by_pair(sample, n_neighbors):
    data = sample(n_persons=8, n_features=5)
    reg, n = 0.2, len(data.X)
    S_w, S_b = scatters(data.X, data.persons, n_neighbors)
    S_w = (1 - reg) * S_w + reg * np.trace(S_w) / n * np.eye(5)
    values, V = scipy.linalg.eigh(S_b, S_w)
    learner = LFDA(n_components=3, pca="full", n_neighbors=n_neighbors, reg=reg)
    learner.fit(data.X, data.persons)
    np.testing.assert_allclose(learner.eigenvalues_, values[::-1][:3], rtol=1e-9)
    embedded = data.X @ V[:, ::-1][:, :3]
    expected = ((embedded[:, None] - embedded[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(learner.distances(data.X, data.X), expected, atol=1e-8)


def test_scalings_of_the_embedding(sample):
    data = sample()
    plain, weighted, orthonormal = (
        LFDA(n_components=3, embedding=kind).fit(data.X, data.persons)
        for kind in ("plain", "weighted", "orthonormalized")
    )
    np.testing.assert_allclose(
        weighted.components_, plain.components_ * np.sqrt(plain.eigenvalues_), rtol=1e-9
    )
    np.testing.assert_allclose(
        orthonormal.components_.T @ orthonormal.components_, np.eye(3), atol=1e-12
    )


def test_full_pca_of_wide_data_loses_nothing(sample):
    """With more features than sightings the span is as good as all features."""
    data = sample(n_persons=6, n_features=40, most=2)
    narrow = np.linalg.qr(data.X.T)[0]  # (40, N)
    wide = LFDA(pca="full").fit(data.X, data.persons)
    inside = LFDA(pca="full").fit(data.X @ narrow, data.persons)
    np.testing.assert_allclose(
        wide.distances(data.X, data.X),
        inside.distances(data.X @ narrow, data.X @ narrow),
        rtol=1e-7,
        atol=1e-7,
    )


def test_too_many_principal_components(sample):
    data = sample()
    with pytest.raises(InputError, match=r"pca=7 .* at most 6"):
        LFDA(pca=7).fit(data.X, data.persons)


def test_without_a_regulariser_few_sightings_are_refused(sample):
    data = sample(n_persons=4, n_features=30, most=1)
    with pytest.raises(InputError, match="larger reg"):
        LFDA(reg=0.0).fit(data.X, data.persons)


def test_no_neighbour_is_refused(sample):
    data = sample()
    with pytest.raises(ValueError, match="n_neighbors"):
        LFDA(n_neighbors=0).fit(data.X, data.persons)
