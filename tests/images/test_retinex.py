"""Retinex against its definition and the symmetries it promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.signal import lfilter

from resight.images._kernels import blurred_image
from resight.images.light import SIGMAS, SPREAD, coefficients, retinex


@pytest.fixture
def image() -> np.ndarray:
    rng = np.random.default_rng(3)
    smooth = gaussian_filter(rng.normal(size=(128, 48, 3)), (6, 6, 0))
    return np.clip(128 + 700 * smooth + 10 * rng.normal(size=smooth.shape), 0, 255).astype(np.uint8)


def _blur_by_definition(plane: np.ndarray, sigma: float) -> np.ndarray:
    """Filter a signal whose border is repeated so often that its ends do not matter."""
    (gain, *feedback), _ = coefficients(sigma)
    denominator = np.array([1.0, *(-b for b in feedback)])
    frame = int(30 * sigma)
    for axis in (0, 1):
        widths = [(0, 0)] * 3
        widths[axis] = (frame, frame)
        long = np.pad(plane, widths, mode="edge")
        for _ in range(2):
            long = np.flip(lfilter([gain], denominator, long, axis=axis), axis)
        plane = np.take(long, np.arange(frame, long.shape[axis] - frame), axis=axis)
    return plane


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_border_goes_on_for_ever(image: np.ndarray, sigma: float) -> None:
    plane = image.astype(float)
    got = blurred_image(plane.reshape(128, -1), *coefficients(sigma)).reshape(plane.shape)
    np.testing.assert_allclose(got, _blur_by_definition(plane, sigma), atol=1e-8)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_recursion_is_close_to_a_gaussian(image: np.ndarray, sigma: float) -> None:
    plane = image.astype(float)
    got = blurred_image(plane.reshape(128, -1), *coefficients(sigma)).reshape(plane.shape)
    want = gaussian_filter(plane, (sigma, sigma, 0), mode="nearest", truncate=8)
    assert np.abs(got - want).max() < 0.04 * np.ptp(plane)


def test_retinex_is_its_definition(image: np.ndarray) -> None:
    plane = image + 1.0
    blurs = [_blur_by_definition(plane, sigma) for sigma in SIGMAS]
    values = np.log(plane) - sum(np.log(blur) for blur in blurs) / 2
    low = values.mean() - SPREAD * values.std()
    want = np.clip(255 * (values - low) / (2 * SPREAD * values.std()), 0, 255)
    want = np.floor(want + 0.5)
    difference = np.abs(retinex(image).astype(int) - want)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3


def test_mirror_and_turn(image: np.ndarray) -> None:
    result = retinex(image)
    np.testing.assert_array_equal(retinex(image[:, ::-1]), result[:, ::-1])
    np.testing.assert_array_equal(retinex(image[::-1]), result[::-1])
    np.testing.assert_array_equal(retinex(image[..., ::-1]), result[..., ::-1])


@pytest.mark.parametrize("light", [0.5, np.linspace(0.3, 1.0, 128)[:, None, None]])
def test_the_light_matters_little(image: np.ndarray, light: float | np.ndarray) -> None:
    lit = (image * light).astype(np.uint8)
    before = np.abs(lit.astype(int) - image).mean()
    after = np.abs(retinex(lit).astype(int) - retinex(image)).mean()
    assert after < before / 4


@pytest.mark.parametrize("level", [0, 1, 128, 255])
def test_one_colour_stays(level: int) -> None:
    plain = np.full((30, 20, 3), level, np.uint8)
    np.testing.assert_array_equal(retinex(plain), plain)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (2, 3), (3, 1)])
def test_tiny_images(shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    result = retinex(image)
    assert result.shape == image.shape
    np.testing.assert_array_equal(retinex(image[::-1, ::-1]), result[::-1, ::-1])
