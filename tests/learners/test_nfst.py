from __future__ import annotations

import numpy as np
import pytest

from resight import NFST, KernelNFST


def test_equals_the_published_code(reference):
    learner = NFST().fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(np.sqrt(D), "nfst") < 1e-7


def test_each_training_person_is_one_point(sample):
    data = sample(n_persons=9, n_features=100)
    learner = NFST().fit(data.X, data.persons)
    assert learner.n_components_ == 8
    E = learner.transform(data.X)
    same = data.persons[:, None] == data.persons[None]
    D = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    assert D[same].max() < 1e-20 * D.max() + 1e-24
    assert D[~same].min() > 0.01 * D.max()


def test_directions_are_orthonormal(sample):
    data = sample(n_persons=9, n_features=100)
    components = NFST().fit(data.X, data.persons).components_
    np.testing.assert_allclose(components.T @ components, np.eye(8), atol=1e-12)


def test_linear_kernel_is_the_same_transform(sample):
    data = sample(n_persons=9, n_features=100)
    direct = NFST().fit(data.X, data.persons)
    kernel = KernelNFST(kernel="linear").fit(data.X, data.persons)
    np.testing.assert_allclose(
        direct.distances(data.X, data.X + 0.1), kernel.distances(data.X, data.X + 0.1), atol=1e-10
    )


def test_an_empty_null_space_says_what_to_change(sample):
    data = sample(n_persons=9, n_features=5)
    N = len(data.X)
    message = rf"null space is empty.*KernelNFST.*more than {N - 9} dimensions.*fewer sightings"
    with pytest.warns(UserWarning, match=message):
        learner = NFST().fit(data.X, data.persons)
    assert learner.n_components_ == 1
    centred = data.X - np.array([data.X[data.persons == p].mean(axis=0) for p in data.persons])
    _, V = np.linalg.eigh(centred.T @ centred)
    np.testing.assert_allclose(abs(V[:, 0] @ learner.components_[:, 0]), 1.0, rtol=1e-9)


@pytest.mark.parametrize("n_features", [100, 30])
def test_a_large_offset_changes_nothing(sample, n_features):
    data = sample(n_persons=9, n_features=n_features)
    near = NFST().fit(data.X, data.persons)
    far = NFST().fit(data.X + 1e5, data.persons)
    assert far.n_components_ == near.n_components_
    np.testing.assert_allclose(
        far.distances(data.X + 1e5, data.X + 1e5), near.distances(data.X, data.X), atol=1e-8
    )


@pytest.mark.parametrize("seed", range(20))
def test_few_sightings_collapse_as_well(seed):
    X = np.random.default_rng(seed).normal(size=(6, 20))
    learner = NFST().fit(X, [1, 1, 2, 2, 3, 3])
    assert learner.n_components_ == 2
    E = learner.transform(X)
    np.testing.assert_allclose(E[::2], E[1::2], atol=1e-12)
