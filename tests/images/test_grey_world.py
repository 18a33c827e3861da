"""Grey world: equal means, and nothing else changes."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.images import light as module
from resight.images.light import grey_world


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 99), st.tuples(*[st.floats(0.5, 1.0)] * 3))
def test_means_are_equal_and_the_lamp_does_not_matter(seed: int, lamp: tuple[float, ...]) -> None:
    image = np.random.default_rng(seed).integers(40, 120, (32, 16, 3)).astype(float)
    lit = np.round(image * lamp).astype(np.uint8)
    even = grey_world(lit).astype(float)
    np.testing.assert_allclose(even.mean(axis=(0, 1)), lit.mean(), atol=0.5)  # rounding
    # Ratios inside a channel stay: gains of the closed form, up to two roundings.
    gains = lit.mean() / lit.mean(axis=(0, 1))
    np.testing.assert_allclose(even, lit * gains, atol=0.501)


@pytest.mark.parametrize("level", [0, 1, 128, 255])
def test_grey_images_stay(level: int) -> None:
    image = np.full((4, 3, 3), level, np.uint8)
    np.testing.assert_array_equal(grey_world(image), image)


def test_a_dark_channel_stays_dark_and_bright_ones_are_clipped() -> None:
    image = np.zeros((2, 2, 3), np.uint8)
    image[..., 0], image[0, 0, 1] = 200, 255
    even = grey_world(image)
    assert not even[..., 2].any()
    assert even[0, 0, 1] == 255


def test_floats_are_refused() -> None:
    with pytest.raises(InputError, match="uint8"):
        grey_world(np.zeros((4, 3, 3)))


def test_example_in_the_docstring() -> None:
    assert doctest.testmod(module).failed == 0
