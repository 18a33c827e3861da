"""Colour conversions in float64, written so that quantised bins never flip.

Descriptors cut these values into bins, so one unit in the last place can move a pixel to the
neighbouring bin. Every formula is therefore spelt out in a fixed order of operations instead of
being handed to a library: OpenCV and scikit-image order them differently and flip bins.
All functions take one RGB image, uint8, shape (height, width, 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]

# First row of the inverse of the NTSC matrix [[1, .956, .621], [1, -.272, -.647],
# [1, -1.106, 1.703]]: luminance as MATLAB's rgb2gray weighs it.
GRAY_WEIGHTS = (0.2989360212937754, 0.5870430744511212, 0.11402090425510325)
XYZ_ROWS = (
    (0.412453, 0.357580, 0.180423),
    (0.212671, 0.715160, 0.072169),
    (0.019334, 0.119193, 0.950227),
)
D65 = (0.95047, 1.0, 1.08883)


def luma(image: Image) -> Image:
    """Convert to the luma Y of ITU-R BT.601 in studio range 16..235, uint8, (height, width)."""
    red, green, blue = np.moveaxis(image, -1, 0).astype(np.float64)
    values = 16.0 + (65.481 * red + 128.553 * green + 24.966 * blue) / 255.0
    # All values are positive, so this rounds halves away from zero, as MATLAB does.
    return np.floor(values + 0.5).astype(np.uint8)


def hsv(image: Image) -> Floats:
    """Convert to hue, saturation and value in [0, 1], float64, (height, width, 3).

    Saturation is ``(max - min) / max`` and not ``1 - min / max``, which differs in the last
    place. Where two channels share the maximum the later of R, G, B decides the hue.
    """
    red, green, blue = np.moveaxis(image, -1, 0) / 255.0
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    divisor = np.where(spread == 0.0, 1.0, spread)
    hue = (green - blue) / divisor
    hue = np.where(green == value, 2.0 + (blue - red) / divisor, hue)
    hue = np.where(blue == value, 4.0 + (red - green) / divisor, hue) / 6.0
    hue = np.where(hue < 0.0, hue + 1.0, hue)
    hue = np.where(spread == 0.0, 0.0, hue)
    return np.stack([hue, spread / np.where(value == 0.0, 1.0, value), value], axis=-1)


def lab(image: Image) -> Floats:
    """Convert sRGB to CIE L*a*b* under D65 as GOG uses it, float64, (height, width, 3)."""
    red, green, blue = np.moveaxis(_SRGB_TO_LINEAR[image], -1, 0)
    x, y, z = (a * red + b * green + c * blue for a, b, c in XYZ_ROWS)
    fx, fy, fz = (_cie_curve(axis / white) for axis, white in zip((x, y, z), D65, strict=True))
    return np.stack([116.0 * fy - 16.0, 500.0 * (fx - fy), 200.0 * (fy - fz)], axis=-1)


def _cie_curve(t: Floats) -> Floats:
    knee = 6.0 / 29.0
    return np.where(t > knee**3, np.cbrt(t), t / (3.0 * knee**2) + 4.0 / 29.0)


_SRGB = np.arange(256) / 255.0
# (256,): linear light of every 8-bit sRGB value
_SRGB_TO_LINEAR = np.where(_SRGB > 0.04045, ((_SRGB + 0.055) / 1.055) ** 2.4, _SRGB / 12.92)
