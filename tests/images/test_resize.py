"""Resizing against its definition, closed forms and symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.images.arrays import resize, taps

SIDES = st.integers(1, 40)


def _keys(x: float) -> float:
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x <= 2 else 0.0


def _line_by_definition(line: np.ndarray, size: int) -> np.ndarray:
    """One line of pixels, pixel by pixel, with a border that is mirrored again and again."""
    old, out = len(line), []
    shrink = min(size / old, 1.0)
    for i in range(size):
        centre = (i + 0.5) * old / size - 0.5
        reach = int(np.ceil(2 / shrink)) + 1
        near = range(int(np.floor(centre)) - reach, int(np.floor(centre)) + reach + 2)
        weights = [_keys(shrink * (centre - j)) for j in near]
        folded = [min(j % (2 * old), 2 * old - 1 - j % (2 * old)) for j in near]
        out.append(np.dot(weights, line[folded]) / sum(weights))
    return np.array(out)


@settings(max_examples=40, deadline=None)
@given(old=SIDES, new=SIDES, seed=st.integers(0, 99))
def test_one_axis_is_the_definition_rounded(old: int, new: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (old, 2, 3), np.uint8)
    got = resize(image, new, 2)
    exact = _line_by_definition(image[:, 0, 0].astype(float), new)
    assert np.abs(got[:, 0, 0] - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-9
    sideways = resize(np.ascontiguousarray(image.transpose(1, 0, 2)), 2, new)
    np.testing.assert_array_equal(sideways.transpose(1, 0, 2), got)


@settings(max_examples=20, deadline=None)
@given(shape=st.tuples(SIDES, SIDES), size=st.tuples(SIDES, SIDES), level=st.integers(0, 255))
def test_one_colour_stays_that_colour(
    shape: tuple[int, int], size: tuple[int, int], level: int
) -> None:
    image = np.full((*shape, 3), level, np.uint8)
    np.testing.assert_array_equal(resize(image, *size), np.full((*size, 3), level))


def test_a_fitting_image_is_returned_as_it_is() -> None:
    image = np.random.default_rng(0).integers(0, 256, (12, 7, 3), np.uint8)
    assert resize(image, 12, 7) is image


def test_mirroring_commutes_with_resizing() -> None:
    image = np.random.default_rng(1).integers(0, 256, (50, 31, 3), np.uint8)
    mirrored = resize(np.ascontiguousarray(image[:, ::-1]), 128, 48)
    difference = resize(image, 128, 48)[:, ::-1].astype(int) - mirrored
    assert np.abs(difference).max() <= 1  # halves may round either way
    assert (difference != 0).mean() < 1e-3


def test_fine_stripes_do_not_alias() -> None:
    stripes = np.zeros((128, 400, 3), np.uint8)
    stripes[:, ::2] = 255
    inner = resize(stripes, 128, 48)[:, 4:-4].astype(int)
    assert np.abs(inner - 127.5).max() <= 2


def test_weights_sum_to_one() -> None:
    for old, new in [(160, 128), (128, 160), (1, 9), (9, 1), (1000, 48)]:
        sources, weights = taps(old, new)
        np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-14)
        assert sources.min() >= 0
        assert sources.max() < old


@pytest.mark.parametrize("size", [(0, 5), (5, -1)])
def test_an_empty_result_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        resize(np.zeros((4, 4, 3), np.uint8), *size)
