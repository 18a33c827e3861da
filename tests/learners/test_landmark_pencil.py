"""The pencil between features against its statement with the inverse of G^T G."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from resight.errors import InputError
from resight.learners._landmark_sums import (
    ChunkSums,
    LandmarkPencil,
    LandmarkStatistics,
    pair_weights,
)


@pytest.fixture
def statistics(sample):
    data = sample(n_persons=20, n_features=8)
    F = data.X - 1.0
    weights = pair_weights(data.persons, data.cameras)
    sums = ChunkSums.of_rows(F, data.persons, data.cameras, weights)
    return F, sums.finish(np.array(["a", "b"]))


@pytest.mark.parametrize("reg_form", ["identity", "kernel", "relative"])
def test_it_is_the_pencil_of_the_features(statistics, reg_form):
    F, found = statistics
    centre = np.linspace(0, 1, F.shape[1])
    G = F + centre
    similar, dissimilar = found.covariances()
    inverse = np.linalg.inv(G.T @ G)
    per_row = np.trace(G @ similar @ G.T) / len(G)  # tr(Lambda_S) / N with Lambda_S = K L_S K / n_S
    ridge = {"identity": inverse, "kernel": np.eye(len(inverse)), "relative": per_row * inverse}[
        reg_form
    ]
    mu, V = eigh(dissimilar, similar + 0.05 * ridge)
    found_mu, found_V = LandmarkPencil(found, centre).solve(0.05, reg_form)
    above = mu > 1
    np.testing.assert_allclose(found_mu, mu[above][::-1], rtol=1e-9)
    weights = np.sqrt(1 - 1 / mu[above])
    expected = G @ (V[:, above] * weights)
    embedded = G @ (found_V * np.sqrt(1 - 1 / found_mu))
    np.testing.assert_allclose(embedded @ embedded.T, expected @ expected.T, atol=1e-9)


def test_one_pencil_serves_many_regularisers(statistics):
    _, found = statistics
    shared = LandmarkPencil(found, np.zeros(8))
    for reg in (1e-1, 1e-2):
        alone = LandmarkPencil(found, np.zeros(8)).solve(reg, "identity")
        for mine, other in zip(shared.solve(reg, "identity"), alone, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_at_least_one_direction_is_kept(statistics):
    _, found = statistics
    mu, V = LandmarkPencil(found, np.zeros(8)).solve(1e9, "kernel")
    assert mu[0] < 1
    assert V.shape == (8, 1)


def test_a_singular_matrix_of_similar_pairs_is_refused_with_advice():
    broken = LandmarkStatistics(
        -np.eye(2),
        3,
        np.array(["a", "b"]),
        np.array([5, 5]),
        np.zeros((2, 2)),
        np.stack([np.eye(2)] * 2),
    )
    with pytest.raises(InputError, match=r"numerically singular.*reg_form='relative'"):
        LandmarkPencil(broken, np.zeros(2)).solve(1e-9, "kernel")
