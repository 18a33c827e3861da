from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners.nfst import null_coefficients, null_directions


def test_null_directions_are_orthonormal_and_complete():
    """Three persons, two sightings each, five independent dimensions: two are left."""
    rng = np.random.default_rng(0)
    persons = np.repeat([0, 1, 2], 2)
    Z = rng.normal(size=(6, 5))
    V = null_directions(Z, persons)
    assert V.shape == (5, 2)
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    np.testing.assert_allclose((Z[::2] - Z[1::2]) @ V, 0, atol=1e-12)


def test_coefficients_sum_to_zero_and_give_unit_directions():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 30))
    X -= X.mean(axis=0)
    coefficients = null_coefficients(X @ X.T, np.repeat(np.arange(4), 2))
    assert coefficients.shape == (8, 3)
    np.testing.assert_allclose(coefficients.sum(axis=0), 0, atol=1e-12)
    W = X.T @ coefficients
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-12)


def test_no_variation_is_refused():
    with pytest.raises(InputError, match="tell any two"):
        null_coefficients(np.zeros((4, 4)), np.array([0, 0, 1, 1]))
