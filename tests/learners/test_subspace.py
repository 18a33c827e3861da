from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners._subspace import pca


@pytest.mark.parametrize("shape", [(12, 40), (40, 12), (15, 15)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_pca_equals_the_svd_of_centred_rows(shape: tuple[int, int], scale: float) -> None:
    X = scale * np.random.default_rng(0).normal(size=shape) + 3 * scale
    _, _, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    projection = pca(X, 7)
    alignment = np.abs(np.sum(projection.basis * Vt[:7].T, axis=0))
    np.testing.assert_allclose(alignment, 1.0, rtol=1e-9)
    np.testing.assert_allclose(projection.basis.T @ projection.basis, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(projection.mean, X.mean(axis=0))


@pytest.mark.parametrize("shape", [(12, 40), (40, 12)])
def test_full_pca_is_a_rotation_of_the_training_rows(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(1).normal(size=shape)
    X -= X.mean(axis=0)
    Z = pca(X, "full")(X)
    assert Z.shape[1] == min(shape[0] - 1, shape[1])
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12)


def test_weak_directions_stay_orthonormal() -> None:
    rng = np.random.default_rng(2)
    strengths = np.logspace(0, -6, 20)
    X = (rng.normal(size=(20, 20)) * strengths) @ np.linalg.qr(rng.normal(size=(300, 20)))[0].T
    projection = pca(X, "full")
    basis = projection.basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    centred = X - projection.mean
    np.testing.assert_allclose(centred @ basis @ basis.T, centred, atol=1e-6)


def test_float32_rows_are_centred_in_float64() -> None:
    X = np.random.default_rng(6).normal(size=(9, 5000)).astype(np.float32) + 100
    single, double = pca(X, 4), pca(X.astype(np.float64), 4)
    np.testing.assert_allclose(np.abs(np.sum(single.basis * double.basis, axis=0)), 1, rtol=1e-12)
    np.testing.assert_allclose(np.abs(single(X)), np.abs(double(X)), rtol=1e-9, atol=1e-9)


def test_auto_takes_what_there_is_and_no_more_than_100() -> None:
    rng = np.random.default_rng(3)
    assert pca(rng.normal(size=(30, 5)), "auto").basis.shape == (5, 5)
    assert pca(rng.normal(size=(150, 200)), "auto").basis.shape == (200, 100)
    assert pca(rng.normal(size=(150, 200)), "auto", limit=9).basis.shape == (200, 9)


def test_too_many_components_name_the_maximum() -> None:
    X = np.random.default_rng(4).normal(size=(8, 30))
    with pytest.raises(InputError, match=r"pca=8 .* at most 7"):
        pca(X, 8)
