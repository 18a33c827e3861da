"""Descriptors of images whose light is evened out first."""

from __future__ import annotations

import numpy as np
import pytest

from resight.datasets.synthetic import draw_person
from resight.descriptors import DESCRIPTORS, descriptor, lomo
from resight.descriptors._base import Relit
from resight.images.arrays import resize
from resight.images.light import grey_world, retinex

NAMES = [name for name in DESCRIPTORS if isinstance(descriptor(name), Relit)]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_descriptor_of_the_evened_image(name: str) -> None:
    plain, light = name.rsplit("-", 1)
    image, even = draw_person(1), {"grey": grey_world, "retinex": retinex}[light]
    fitted = resize(image, *descriptor(plain).size)
    expected = descriptor(plain).describe(even(fitted))
    np.testing.assert_array_equal(descriptor(name).describe(image), expected)
    assert descriptor(name).name == name
    assert descriptor(name).blocks == descriptor(plain).blocks


def test_a_grey_image_stays_as_it_is() -> None:
    image = draw_person(2, size=(128, 48))[..., :1].repeat(3, axis=2)
    for name in ("gog", "lomo-dagger"):
        grey = descriptor(f"{name}-grey").describe(image)
        np.testing.assert_array_equal(grey, descriptor(name).describe(image))


def test_colours_after_retinex_are_those_of_lomo() -> None:
    image = draw_person(3, size=(128, 48))
    relit = Relit(of="lomo-dagger", light="retinex").describe(image)
    np.testing.assert_array_equal(relit[:20480], lomo(image)[:20480])


def test_a_coloured_lamp_leaves_no_trace_after_grey_world() -> None:
    image = draw_person(4, size=(128, 48)) // 2 + 20
    lamp = np.round(image * [1.0, 0.8, 1.3]).astype(np.uint8)
    plain, grey = (
        np.linalg.norm(descriptor(name).describe(image) - descriptor(name).describe(lamp))
        for name in ("whos-dagger", "whos-dagger-grey")
    )
    assert grey < plain / 3
