"""Boxes in images, given as x, y, width and height: what of them lies inside is cut out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from resight.errors import InputError
from resight.images.colour import Image

MIN_HEIGHT, MIN_WIDTH = 32, 12  # the smallest crop that can show a person


def inside(image: Image, box: Sequence[int]) -> Image:
    """Return the part of an image that a box covers; empty if the box lies outside."""
    x, y, width, height = (int(value) for value in box)
    return image[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]


def cut(image: Image, box: Sequence[int]) -> Image:
    """Cut a box out, clipped to the image; refuse one that lies outside."""
    crop = inside(image, box)
    if crop.size == 0:
        x, y, width, height = (int(value) for value in box)
        raise InputError(
            f"box x={x} y={y} w={width} h={height} is outside the image of "
            f"{image.shape[1]} x {image.shape[0]} pixels"
        )
    return np.ascontiguousarray(crop)
