"""Compiled weighted sums of resizing: tap by tap in a fixed order, rounded and clipped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Floats, Image

Taps = tuple[NDArray[np.intp], Floats]


@kernel
def resized(image: Image, down: Taps, along: Taps, rows_first: bool) -> Image:
    """Resize both axes of (rows, columns, 3), in one call that holds no GIL."""
    if rows_first:
        return turned(first_axis(turned(first_axis(image, down)), along))
    return first_axis(turned(first_axis(turned(image), along)), down)


@kernel
def turned(image: Image) -> Image:
    """Swap rows and columns."""
    return np.ascontiguousarray(image.transpose(1, 0, 2))


@kernel
def first_axis(image: Image, taps: Taps) -> Image:
    """Resize the first axis of (rows, columns, 3): all values of a row take the same weights."""
    sources, weights = taps
    n_taps, size = sources.shape
    lines = image.reshape(image.shape[0], -1)
    width = lines.shape[1]
    out = np.empty((size, width), np.uint8)
    total = np.empty(width)
    for y in range(size):
        total[:] = 0.0
        for tap in range(n_taps):
            line, weight = lines[sources[tap, y]], weights[tap, y]
            for x in range(width):
                total[x] += weight * line[x]
        for x in range(width):
            out[y, x] = int(min(max(total[x], 0.0), 255.0) + 0.5)
    return out.reshape(size, image.shape[1], 3)
