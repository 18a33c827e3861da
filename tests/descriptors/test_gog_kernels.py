"""Each compiled stage of GOG against its closed form or brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definitions import gog as definition
from resight.descriptors import _gog_fast as fast
from resight.descriptors._gog_fast import REGION_CONDITION, framed_planes, patch_sums
from resight.descriptors.gog import COLOURS, orientation_votes

SETTINGS = settings(max_examples=20, deadline=None)


def spd(rng: np.random.Generator, side: int, condition: float) -> np.ndarray:
    vectors = np.linalg.qr(rng.normal(size=(side, side)))[0]
    values = condition ** rng.uniform(-0.5, 0.5, side)
    matrix = (vectors * values) @ vectors.T
    return (matrix + matrix.T) / 2


def trace_free(log: np.ndarray) -> np.ndarray:
    return log - np.trace(log) / len(log) * np.eye(len(log))


@pytest.mark.parametrize(("angle", "bins"), [(0, 2), (90, 3), (180, 0), (270, 1)])
def test_gradient_along_an_axis_votes_for_one_bin(angle, bins):
    # The angle is counted from the upward direction; 0 falls half a turn after the first bin.
    y, x = np.mgrid[:9, :9]
    ramp = -np.cos(np.radians(angle)) * y + np.sin(np.radians(angle)) * x
    votes = orientation_votes(ramp.astype(float))[4, 4]
    np.testing.assert_allclose(votes[bins], 2.0)
    np.testing.assert_allclose(np.delete(votes, bins), 0.0, atol=1e-12)


def test_votes_share_the_whole_magnitude():
    luma = np.random.default_rng(0).uniform(size=(20, 30))
    framed = np.pad(luma, 1)
    across = framed[1:-1, 2:] - framed[1:-1, :-2]
    upward = framed[:-2, 1:-1] - framed[2:, 1:-1]
    votes = orientation_votes(luma)
    np.testing.assert_allclose(votes.sum(axis=-1), np.hypot(across, upward))
    assert ((votes > 0).sum(axis=-1) <= 2).all()


@pytest.mark.parametrize("space", list(COLOURS))
def test_pixel_features_stay_in_the_range_that_bounds_the_condition(space):
    # All 8-bit corners and a sample of colours beside each other: |mean|^2 must stay below 8.
    rng = np.random.default_rng(1)
    corners = 255 * rng.integers(0, 2, (64, 64, 3), np.uint8)
    features = definition.pixel_features(corners, space)
    largest = np.abs(features[..., 5:]).reshape(-1, features.shape[-1] - 5)
    votes = features[..., 1:5]
    assert 1 + (largest**2).sum(axis=1).max() + (votes**2).sum(axis=-1).max() < 8


@SETTINGS
@given(st.integers(0, 99), st.sampled_from([(16, 2), (16, 6), (32, 4)]))
def test_patch_sums_are_sums_over_clipped_windows(seed, size):
    features = np.random.default_rng(seed).normal(size=(*size, 2))
    pairs = np.array([[0, 0], [1, 0], [3, 1], [3, 3], [2, 0]])  # 2 is 0 and 3 is 1 everywhere
    sums = patch_sums(framed_planes([features]), pairs).reshape(5, size[0] // 2, size[1] // 2)
    for row, column in np.ndindex(sums.shape[1:]):
        window = features[
            max(2 * row - 2, 0) : 2 * row + 3, max(2 * column - 2, 0) : 2 * column + 3
        ]
        a, b = window[..., 0], window[..., 1]
        expected = [(a * a).sum(), (a * b).sum(), b.sum(), a.size, 0.0]
        np.testing.assert_allclose(sums[:, row, column], expected, atol=1e-12)


@pytest.mark.parametrize("space", list(COLOURS))
@pytest.mark.parametrize("size", [(16, 2), (48, 22)])
def test_patch_logarithms_equal_those_from_eigenvectors(space, size):
    image = np.random.default_rng(2).integers(0, 256, (*size, 3)).astype(np.uint8)
    image[: size[0] // 2] = 90  # flat patches too
    sums = fast.patch_moments(fast.pixel_groups(image))
    gaussians = definition.patch_gaussians(definition.pixel_features(image, space))
    expected = definition.half_vector(definition.logarithm(definition.embed(*gaussians)))
    ours = fast.patch_half_vectors(sums, space)
    np.testing.assert_allclose(ours, expected.reshape(-1, len(ours)).T, atol=3e-8)


@pytest.mark.parametrize("m", [1, 5, 45])
def test_strip_matrices_are_the_embedded_gaussians(m):
    rng = np.random.default_rng(3)
    patches = rng.normal(size=(16, 6, m)) + rng.normal(size=m)
    mean, covariance = definition.strip_gaussians(patches)
    expected = definition.embed(mean, covariance)
    columns = np.ascontiguousarray(patches.reshape(-1, m).T)
    matrices, lower, upper = fast.strip_gaussians(columns, 32, 12)
    scale = expected[:, -1, -1]  # the factor that makes the determinant 1
    np.testing.assert_allclose(matrices * scale[:, None, None], expected, rtol=1e-9)
    values = np.linalg.eigvalsh(matrices)
    assert (lower <= values[:, 0]).all()
    assert (values[:, -1] <= upper).all()


@SETTINGS
@given(st.integers(0, 99), st.integers(2, 46), st.floats(0.0, 9.0))
def test_region_logarithms_equal_those_from_eigenvectors(seed, side, digits):
    matrix = spd(np.random.default_rng(seed), side, 10.0**digits)
    bounds = np.array([10.0 ** (-digits / 2)]), np.array([10.0 ** (digits / 2)])
    ours = fast.strip_half_vectors(matrix[None], *bounds)
    expected = definition.half_vector(trace_free(definition.logarithm(matrix)))
    np.testing.assert_allclose(ours, expected, atol=1e-7)


@pytest.mark.parametrize("matrix", [np.eye(46), np.diag(2.0 ** np.arange(-10, 11))])
def test_region_logarithms_of_diagonal_matrices(matrix):
    # Nothing to reflect: every Householder vector vanishes.
    values = np.diag(matrix)
    ours = fast.strip_half_vectors(
        matrix[None], values.min(keepdims=True), values.max(keepdims=True)
    )
    expected = definition.half_vector(trace_free(np.diag(np.log(values))))
    np.testing.assert_allclose(ours, expected, atol=2e-8)


def test_matrices_beyond_the_poles_are_left_to_eigenvectors():
    matrices = np.stack([spd(np.random.default_rng(s), 10, 1e4) for s in range(3)])
    inside = np.full(3, 1e-2), np.full(3, 1e2)
    outside = np.full(3, 1e-2), np.array([1e2, 1.01e-2 * REGION_CONDITION, 1e2])
    near, exact = (
        fast.strip_half_vectors(matrices, *inside),
        fast.strip_half_vectors(matrices, *outside),
    )
    np.testing.assert_allclose(near, exact, atol=2e-8)
    assert (near != exact).any()
