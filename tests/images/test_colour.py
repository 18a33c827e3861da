"""Colour conversions against exact arithmetic, closed forms and every gray level."""

from __future__ import annotations

import colorsys
from fractions import Fraction

import numpy as np
import pytest

from definitions.colour import gray, ruzon_lab
from resight.images import colour


@pytest.fixture(scope="module")
def colours() -> np.ndarray:
    """All combinations of 18 levels that include the extremes, and all grays, as one image."""
    levels = np.array([0, 1, 2, 15, 31, 32, 63, 64, 95, 96, 127, 128, 160, 191, 192, 223, 254, 255])
    cube = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(1, -1, 3)
    grays = np.repeat(np.arange(256), 3).reshape(1, -1, 3)
    return np.concatenate([cube, grays], axis=1).astype(np.uint8)


def test_gray_is_the_nearest_level_in_exact_arithmetic(colours: np.ndarray) -> None:
    weights = [Fraction(w) for w in colour.GRAY_WEIGHTS]
    got = gray(colours)[0]
    for level, pixel in zip(got[::37], colours[0, ::37].tolist(), strict=True):
        exact = sum(w * v for w, v in zip(weights, pixel, strict=True))
        assert abs(Fraction(int(level)) - exact) <= Fraction(1, 2) + Fraction(1, 10**12)


def test_gray_weights_invert_the_ntsc_matrix() -> None:
    ntsc = [[1, 0.956, 0.621], [1, -0.272, -0.647], [1, -1.106, 1.703]]
    np.testing.assert_allclose(colour.GRAY_WEIGHTS, np.linalg.inv(ntsc)[0], rtol=1e-14)


def test_gray_pixels_keep_their_level() -> None:
    grays = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(16, 16, 3)
    np.testing.assert_array_equal(gray(grays), grays[..., 0])


def test_luma_spans_the_studio_range() -> None:
    image = np.array(
        [[[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8
    )
    assert colour.luma(image).tolist() == [[16, 235, 81, 145, 41]]


def test_hsv_agrees_with_the_standard_library(colours: np.ndarray) -> None:
    got = colour.hsv(colours)[0]
    want = [colorsys.rgb_to_hsv(*(v / 255.0 for v in pixel)) for pixel in colours[0].tolist()]
    distance = np.abs(got - want)
    distance[:, 0] = np.minimum(distance[:, 0], 1.0 - distance[:, 0])  # hue is a circle
    assert distance.max() < 1e-14
    assert got.min() >= 0.0
    assert got.max() <= 1.0


def test_hue_on_ties_is_decided_by_the_later_channel() -> None:
    yellow_cyan_magenta = np.array([[[255, 255, 0], [0, 255, 255], [255, 0, 255]]], np.uint8)
    assert colour.hsv(yellow_cyan_magenta)[0, :, 0].tolist() == [1 / 6, 3 / 6, 5 / 6]


def test_lab_of_white_black_and_the_primaries() -> None:
    image = np.array([[[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]]], np.uint8)
    want = [[100, 0, 0], [0, 0, 0], [53.24, 80.09, 67.20], [32.30, 79.19, -107.86]]
    np.testing.assert_allclose(colour.lab(image)[0], want, atol=0.02)


def test_ruzon_lab_takes_values_as_linear() -> None:
    half = np.full((1, 1, 3), 128, np.uint8)
    lightness = 116.0 * (128 / 255) ** (1 / 3) - 16.0
    np.testing.assert_allclose(ruzon_lab(half)[0, 0], [lightness, 0, 0], atol=1e-9)


def test_ruzon_lab_unscaled_sees_one_as_white() -> None:
    ones = np.ones((1, 1, 3), np.uint8)
    np.testing.assert_allclose(ruzon_lab(ones, 1.0)[0, 0], [100, 0, 0], atol=1e-9)
