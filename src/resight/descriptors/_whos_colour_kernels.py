"""Compiled colour histograms of WHOS; `tests/definitions` says the same in NumPy.

Stripes are 16 rows high and start every 8 rows, so every pixel lies in two of them: weights are
summed over bands of 8 rows, and a stripe is the sum of two bands.
"""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.descriptors._pixel_kernels import pixel_hsv
from resight.images.colour import Floats, Image


@kernel
def stripe_histograms(
    image: Image, mask: Floats, scales: Floats, band: int, n_channels: int, out: Floats
) -> None:
    """Fill `out` with histograms of HS, RGB and (if 3 channels) Lab, each of length 1.

    `scales` (2, 256) holds ``arange(256) / 255`` and, for stripes without a value above 1,
    ``arange(256)``. In `out` come channels, then 15 stripes, then 64 bins.
    """
    n_stripes = image.shape[0] // band - 1
    bands = np.zeros((n_channels, n_stripes + 1, 64))
    _add_hs_and_rgb(image, mask, scales[0], band, bands)
    if n_channels == 3:
        _add_lab(image, mask, scales[0], 0, band, bands[2])
    for channel in range(n_channels):
        for stripe in range(n_stripes):
            upper, lower = bands[channel, stripe], bands[channel, stripe + 1]
            if channel == 2 and _is_almost_black(image, stripe * band, (stripe + 2) * band):
                both = np.zeros((2, 64))
                rows = image[stripe * band : (stripe + 2) * band]
                _add_lab(rows, mask, scales[1], stripe * band, band, both)
                upper, lower = both[0], both[1]
            begin = 64 * (channel * n_stripes + stripe)
            _add_normalised(upper, lower, out[begin : begin + 64])


@kernel
def _add_normalised(a: Floats, b: Floats, out: Floats) -> None:
    """Write a + b, scaled to length 1, into `out`."""
    total = 0.0
    for i in range(out.shape[0]):
        out[i] = a[i] + b[i]
        total += out[i] * out[i]
    scale = 1.0 / np.sqrt(total) if total > 0.0 else 0.0
    for i in range(out.shape[0]):
        out[i] *= scale


@kernel
def _is_almost_black(image: Image, top: int, bottom: int) -> bool:
    """Whether these rows hold no value above 1."""
    for y in range(top, bottom):
        for x in range(image.shape[1]):
            if image[y, x, 0] > 1 or image[y, x, 1] > 1 or image[y, x, 2] > 1:
                return False
    return True


@kernel
def _add_hs_and_rgb(image: Image, mask: Floats, unit: Floats, band: int, bands: Floats) -> None:
    """Add the weight of every pixel to its bins in `bands` (2 or more, n_bands, 64)."""
    for y in range(image.shape[0]):
        hs, rgb = bands[0, y // band], bands[1, y // band]
        for x in range(image.shape[1]):
            red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
            hue, saturation, _ = pixel_hsv(unit[red], unit[green], unit[blue])
            hs[int(hue / (1.01 / 8.0)) + 8 * int(saturation / (1.01 / 8.0))] += mask[y, x]
            rgb[(red >> 6) + 4 * (green >> 6) + 16 * (blue >> 6)] += mask[y, x]


@kernel
def _add_lab(
    image: Image, mask: Floats, scaled: Floats, top: int, band: int, bands: Floats
) -> None:
    """Add the weight of every pixel to its bin of L*a*b* in `bands` (n_bands, 64).

    `top` is the row of the mask at which this part of the image begins.
    """
    for y in range(image.shape[0]):
        lab = bands[y // band]
        for x in range(image.shape[1]):
            red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
            lab[_lab_bin(scaled[red], scaled[green], scaled[blue])] += mask[top + y, x]


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
