"""Compiled colour histograms of WHOS; `_whos_definition` says the same in NumPy.

Stripes are 16 rows high and start every 8 rows, so every pixel lies in two of them: weights are
summed over bands of 8 rows, and a stripe is the sum of two bands.
"""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.descriptors._hsv_kernel import pixel_hsv
from resight.images.colour import Floats, Image


@kernel
def hs_and_rgb_sums(image: Image, mask: Floats, unit: Floats, band: int) -> Floats:
    """Weight per bin and band of hue-saturation and of RGB: (2, n_bands, 64).

    `unit` holds ``arange(256) / 255``.
    """
    height, width = image.shape[:2]
    sums = np.zeros((2, height // band, 64))
    for y in range(height):
        hs, rgb = sums[0, y // band], sums[1, y // band]
        for x in range(width):
            red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
            hue, saturation, _ = pixel_hsv(unit[red], unit[green], unit[blue])
            hs[int(hue / (1.01 / 8.0)) + 8 * int(saturation / (1.01 / 8.0))] += mask[y, x]
            rgb[(red >> 6) + 4 * (green >> 6) + 16 * (blue >> 6)] += mask[y, x]
    return sums


@kernel
def lab_sums(image: Image, mask: Floats, unit: Floats, band: int) -> Floats:
    """Weight per bin and band of L*a*b*: (n_bands, 64); `unit` are the 256 scaled values."""
    height, width = image.shape[:2]
    sums = np.zeros((height // band, 64))
    for y in range(height):
        lab = sums[y // band]
        for x in range(width):
            red, green, blue = unit[image[y, x, 0]], unit[image[y, x, 1]], unit[image[y, x, 2]]
            lab[_lab_bin(red, green, blue)] += mask[y, x]
    return sums


@kernel
def _lab_bin(red: float, green: float, blue: float) -> int:
    # The constants and the order of operations are those of `colour.ruzon_lab`: exactly gray
    # pixels lie on the edge a = b = 0, and their bin is decided by the last bit.
    x = (0.412453 * red + 0.357580 * green + 0.180423 * blue) / 0.950456
    y = 0.212671 * red + 0.715160 * green + 0.072169 * blue
    z = (0.019334 * red + 0.119193 * green + 0.950227 * blue) / 1.088754
    fx, fy, fz = _curve(x), _curve(y), _curve(z)
    lightness = 116.0 * fy - 16.0 if y > 0.008856 else 903.3 * y
    a, b = 500.0 * (fx - fy), 200.0 * (fy - fz)
    first = (a > -55.0) + (a > 0.0) + (a > 55.0)
    second = (b > -55.0) + (b > 0.0) + (b > 55.0)
    return min(max(int(lightness / 25.25), 0), 3) + 4 * first + 16 * second


@kernel
def _curve(t: float) -> float:
    return t ** (1.0 / 3.0) if t > 0.008856 else 7.787 * t + 16.0 / 116.0
