"""Compiled weighted sums of resizing: tap by tap in a fixed order, rounded and clipped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Floats, Image

Sources = NDArray[np.intp]


@kernel
def resized(
    image: Image, down: tuple[Sources, Floats], along: tuple[Sources, Floats], rows_first: bool
) -> Image:
    """Resize both axes of (rows, columns, 3), in one call that holds no GIL."""
    height = down[0].shape[1]
    if rows_first:
        lines = down_columns(image.reshape(image.shape[0], -1), down[0], down[1])
        return along_rows(lines.reshape(height, image.shape[1], 3), along[0], along[1])
    narrow = along_rows(image, along[0], along[1])
    lines = down_columns(narrow.reshape(narrow.shape[0], -1), down[0], down[1])
    return lines.reshape(height, narrow.shape[1], 3)


@kernel
def down_columns(image: Image, sources: Sources, weights: Floats) -> Image:
    """Resize the first axis of (rows, values): every value of a line takes the same weights."""
    n_taps, size = sources.shape
    width = image.shape[1]
    out = np.empty((size, width), np.uint8)
    total = np.empty(width)
    for y in range(size):
        total[:] = 0.0
        for tap in range(n_taps):
            line, weight = image[sources[tap, y]], weights[tap, y]
            for x in range(width):
                total[x] += weight * line[x]
        for x in range(width):
            out[y, x] = int(min(max(total[x], 0.0), 255.0) + 0.5)
    return out


@kernel
def along_rows(image: Image, sources: Sources, weights: Floats) -> Image:
    """Resize the second axis of (rows, columns, 3)."""
    n_taps, size = sources.shape
    height = image.shape[0]
    out = np.empty((height, size, 3), np.uint8)
    for y in range(height):
        line = image[y]
        for x in range(size):
            red, green, blue = 0.0, 0.0, 0.0
            for tap in range(n_taps):
                pixel, weight = line[sources[tap, x]], weights[tap, x]
                red += weight * pixel[0]
                green += weight * pixel[1]
                blue += weight * pixel[2]
            out[y, x, 0] = int(min(max(red, 0.0), 255.0) + 0.5)
            out[y, x, 1] = int(min(max(green, 0.0), 255.0) + 0.5)
            out[y, x, 2] = int(min(max(blue, 0.0), 255.0) + 0.5)
    return out
