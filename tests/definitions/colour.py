"""Colour conversions of WHOS and LOMO in plain NumPy; the compiled kernels have their own."""

from __future__ import annotations

import math

import numpy as np

from resight.images.colour import GRAY_WEIGHTS, XYZ_ROWS, Floats, Image

RUZON_WHITE = (0.950456, 1.0, 1.088754)


def gray(image: Image) -> Image:
    """Convert to gray levels, rounded to uint8, shape (height, width)."""
    red, green, blue = np.moveaxis(image, -1, 0).astype(np.float64)
    weights = GRAY_WEIGHTS
    return np.floor(weights[0] * red + weights[1] * green + weights[2] * blue + 0.5).astype(
        np.uint8
    )


def ruzon_lab(image: Image, scale: float = 255.0) -> Floats:
    """Convert to the L*a*b* of WHOS: gamma-encoded values are used as if they were linear.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3)
    scale : float
        What the channels are divided by. The routine that WHOS builds on divides by 255 only
        where some value exceeds 1, so an almost black region is passed with ``scale=1``.

    Returns
    -------
    float64 array of shape (height, width, 3)

    Notes
    -----
    Exactly gray pixels fall on a = b = 0, an edge between two bins of WHOS, so their bin hangs
    on rounding. The power ``t ** (1 / 3)`` of the C library and these sums round as the
    published program does; ``cbrt``, NumPy's vector instructions and matrix products do not.
    """
    red, green, blue = (channel / scale for channel in np.moveaxis(image, -1, 0).astype(np.float64))
    x, y, z = (a * red + b * green + c * blue for a, b, c in XYZ_ROWS)
    x, z = x / RUZON_WHITE[0], z / RUZON_WHITE[2]
    fx, fy, fz = (_ruzon_curve(axis) for axis in (x, y, z))
    lightness = np.where(y > 0.008856, 116.0 * fy - 16.0, 903.3 * y)
    return np.stack([lightness, 500.0 * (fx - fy), 200.0 * (fy - fz)], axis=-1)


def _ruzon_curve(t: Floats) -> Floats:
    return np.where(t > 0.008856, _power(t, 1.0 / 3.0), 7.787 * t + 16.0 / 116.0)


_power = np.vectorize(math.pow, otypes=[np.float64])  # the C library's, on every processor
