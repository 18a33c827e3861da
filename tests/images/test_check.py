"""Arrays that are no images are refused with the way to make them one."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.images import as_rgb


def test_an_rgb_image_is_not_copied() -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    assert as_rgb(image) is image


def test_strided_views_become_contiguous() -> None:
    view = np.zeros((8, 8, 3), np.uint8)[::2, ::-1]
    assert as_rgb(view).flags.c_contiguous


def test_a_frozen_image_is_copied_and_stays_frozen() -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    image.flags.writeable = False
    assert as_rgb(image).flags.writeable
    assert not image.flags.writeable


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        (np.zeros((4, 4, 3)), "np.round"),
        (np.full((4, 4, 3), np.nan), "NaN"),
        (np.zeros((4, 4, 3), np.uint16), "rescale"),
        (np.zeros((4, 4), np.uint8), "np.repeat"),
        (np.zeros((4, 4, 4), np.uint8), "alpha"),
        (np.zeros((3, 9, 8), np.uint8), "np.moveaxis"),
        (np.zeros((2, 4, 4, 3), np.uint8), "one image at a time"),
        (np.zeros((4, 4, 2), np.uint8), "red, green and blue"),
        (np.zeros((0, 4, 3), np.uint8), "empty"),
        ([[1, 2, 3]], "to read a file"),
        ("person.png", "to read a file"),
    ],
)
def test_what_is_no_image_is_refused_with_the_next_step(image: object, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        as_rgb(image)
