"""Colour conversions of pixels, compiled; `resight.images.colour` is their oracle.

The operations and their order are those of `resight.images.colour`: what they give is quantised,
and the last bit can decide a bin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Image


@kernel
def pixel_hsv(red: float, green: float, blue: float) -> tuple[float, float, float]:
    """Hue, saturation and value of a pixel of values in [0, 1], as `colour.hsv`."""
    value = max(red, green, blue)
    spread = value - min(red, green, blue)
    if spread == 0.0:
        return 0.0, 0.0, value
    if blue == value:
        hue = (4.0 + (red - green) / spread) / 6.0
    elif green == value:
        hue = (2.0 + (blue - red) / spread) / 6.0
    else:
        hue = ((green - blue) / spread) / 6.0
    if hue < 0.0:
        hue += 1.0
    return hue, spread / value, value


@kernel
def gray_levels(image: Image, weights: tuple[float, float, float]) -> NDArray[np.int16]:
    """Gray levels 0..255 of an image, (h, w), as `colour.gray`."""
    height, width = image.shape[:2]
    gray = np.empty((height, width), np.int16)
    for y in range(height):
        for x in range(width):
            red, green, blue = image[y, x]
            gray[y, x] = int(weights[0] * red + weights[1] * green + weights[2] * blue + 0.5)
    return gray
