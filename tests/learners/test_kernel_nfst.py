from __future__ import annotations

import numpy as np
import pytest

from resight import KernelNFST
from resight.errors import InputError


def test_equals_the_published_code(reference):
    learner = KernelNFST().fit(reference.X, reference.persons)
    D = learner.distances(reference.queries, reference.gallery)
    assert reference.error_of(np.sqrt(D), "knfst") < 1e-7


def test_each_training_person_is_one_point_with_fewer_features_than_persons(sample):
    data = sample(n_persons=9, n_features=5)
    learner = KernelNFST(width=0.1).fit(data.X, data.persons)
    assert learner.n_components_ == 8
    E = learner.transform(data.X)
    same = data.persons[:, None] == data.persons[None]
    D = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    assert D[same].max() < 1e-10 * D[~same].min()


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_of_the_kernel_does_not_matter(sample, scale):
    """The published absolute threshold of eigenvalues would drop or keep others."""
    data = sample(n_persons=9, n_features=100)
    K = data.X @ data.X.T
    plain = KernelNFST(kernel="precomputed").fit(K, data.persons)
    scaled = KernelNFST(kernel="precomputed").fit(scale * K, data.persons)
    assert plain.n_components_ == scaled.n_components_
    D = scaled.distances(scale * K, scale * K)
    np.testing.assert_allclose(D, scale * plain.distances(K, K), atol=1e-8 * D.max())


def test_a_kernel_that_tells_nobody_apart(sample):
    data = sample()
    with pytest.raises(InputError, match="tell any two"):
        KernelNFST(kernel=lambda A, B: np.ones((len(A), len(B)))).fit(data.X, data.persons)
