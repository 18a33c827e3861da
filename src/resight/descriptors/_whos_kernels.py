"""Compiled WHOS; `tests/definitions` says the same in NumPy.

`describe` does everything in one call, so that a thread works for long without the GIL. Stripes of
colour are 16 rows high and start every 8 rows, so every pixel lies in two of them: weights are
summed over bands of 8 rows, and a stripe is the sum of two bands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images._kernels import gray_levels, pixel_hsv
from resight.images.colour import Floats, Image

Codes = NDArray[np.int64]


@kernel
def describe(
    image: Image,
    window: Image,
    mask: Floats,
    scales: Floats,
    weights: tuple[float, float, float],
    table: Codes,
    n_channels: int,
) -> Floats:
    """Compute the whole descriptor: with 3 colour channels WHOS-dagger, with 2 WHOS-star."""
    colours, hog = n_channels * 15 * 64, 13 * 5 * 16
    patterns = 7 * 3 * 58 if n_channels == 3 else 0
    out = np.empty(colours + hog + patterns)
    stripe_histograms(image, mask, scales, 8, n_channels, out[:colours])
    hog_blocks(window, 8, 4, out[colours : colours + hog])
    if n_channels == 3:
        lbp_cells(gray_levels(window, weights), table, 16, 58, out[colours + hog :])
    return np.sqrt(out)


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
            rows = image[stripe * band : (stripe + 2) * band]
            if channel == 2 and rows.max() <= 1:  # almost black
                both = np.zeros((2, 64))
                _add_lab(rows, mask, scales[1], stripe * band, band, both)
                upper, lower = both[0], both[1]
            begin = 64 * (channel * n_stripes + stripe)
            _write_normalised(upper + lower, out[begin : begin + 64])


@kernel
def _write_normalised(values: Floats, out: Floats) -> None:
    """Write values, scaled to length 1, into `out`."""
    total = 0.0
    for value in values:
        total += value * value
    out[:] = values * (1.0 / np.sqrt(total) if total > 0.0 else 0.0)


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
def _add_lab(image: Image, mask: Floats, scale: Floats, top: int, band: int, bands: Floats) -> None:
    """Add the weight of every pixel to its bin of L*a*b* in `bands` (n_bands, 64).

    `top` is the row of the mask at which this part of the image begins.
    """
    for y in range(image.shape[0]):
        lab = bands[y // band]
        for x in range(image.shape[1]):
            red, green, blue = image[y, x, 0], image[y, x, 1], image[y, x, 2]
            lab[_lab_bin(scale[red], scale[green], scale[blue])] += mask[top + y, x]


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


@kernel(fast=True)
def hog_blocks(image: Image, cell: int, n_bins: int, out: Floats) -> None:
    """Fill `out` with blocks of 2 x 2 cells, each of length 1, column by column."""
    votes = _hog_votes(image, cell, n_bins)  # (rows + 2, columns + 2, n_bins)
    at = 0
    for column in range(1, votes.shape[1] - 2):
        for row in range(1, votes.shape[0] - 2):
            block = votes[row : row + 2, column : column + 2].copy().ravel()
            _write_normalised(block, out[at : at + block.size])
            at += block.size


@kernel(fast=True)
def _hog_votes(image: Image, cell: int, n_bins: int) -> Floats:
    """Spread each gradient over the nearest 2 x 2 cells and 2 angles, linearly in each."""
    height, width = image.shape[:2]
    votes = np.zeros((height // cell + 2, width // cell + 2, n_bins))
    framed = np.zeros((height + 2, width + 2, 3), np.int64)  # outside the image all is black
    framed[1:-1, 1:-1] = image
    for y in range(height):
        row, lower = _cell_before(y, cell)
        for x in range(width):
            dx, dy = _strongest_change(framed, y, x)
            magnitude = np.sqrt(float(dx * dx + dy * dy))
            if magnitude == 0.0:
                continue
            angle = np.arctan2(float(dy), float(dx))
            turn = (angle + np.pi if angle < 0.0 else angle) * (n_bins / np.pi) - 0.5
            first = int(np.floor(turn))
            share = turn - first
            second = (first + 1) % n_bins
            first %= n_bins
            column, right = _cell_before(x, cell)
            for i in range(2):
                for j in range(2):
                    weight = magnitude * (lower if i else 1.0 - lower)
                    weight *= right if j else 1.0 - right
                    votes[row + i, column + j, first] += weight * (1.0 - share)
                    votes[row + i, column + j, second] += weight * share
    return votes


@kernel
def _cell_before(pixel: int, cell: int) -> tuple[int, float]:
    """Cell whose centre lies before that of a pixel, and the pixel's share in the next cell."""
    place = (pixel + 0.5) / cell + 0.5
    return int(place), place - int(place)


@kernel
def _strongest_change(framed: Codes, y: int, x: int) -> tuple[int, int]:
    """Centred differences of the channel that changes most."""
    best, best_dx, best_dy = -1, 0, 0
    for c in range(3):
        dx = framed[y + 1, x + 2, c] - framed[y + 1, x, c]
        dy = framed[y, x + 1, c] - framed[y + 2, x + 1, c]
        if dx * dx + dy * dy > best:
            best, best_dx, best_dy = dx * dx + dy * dy, dx, dy
    return best_dx, best_dy


@kernel(fast=True)
def lbp_cells(gray: Codes, table: Codes, cell: int, n_codes: int, out: Floats) -> None:
    """Fill `out` with square roots of the shares of patterns: code, column, row of cells."""
    height, width = gray.shape
    rows, columns = height // cell, width // cell
    counts = np.zeros((rows + 2, columns + 2, n_codes))
    for y in range(1, height - 1):
        row, lower = _cell_before(y, cell)
        for x in range(1, width - 1):
            code = table[_neighbour_bits(gray, y, x)]
            column, right = _cell_before(x, cell)
            counts[row, column, code] += (1.0 - lower) * (1.0 - right)
            counts[row, column + 1, code] += (1.0 - lower) * right
            counts[row + 1, column, code] += lower * (1.0 - right)
            counts[row + 1, column + 1, code] += lower * right
    shares = out.reshape(n_codes, columns, rows)
    for row in range(rows):
        for column in range(columns):
            found = counts[row + 1, column + 1]
            shares[:, column, row] = np.sqrt(found) / (np.sqrt(found.sum()) + 1e-10)


@kernel
def _neighbour_bits(gray: Codes, y: int, x: int) -> int:
    """Set a bit for each brighter neighbour: E, SE, S, SW, W, NW, N, NE."""
    centre = gray[y, x]
    bits = int(gray[y, x + 1] > centre) | int(gray[y + 1, x + 1] > centre) << 1
    bits |= int(gray[y + 1, x] > centre) << 2 | int(gray[y + 1, x - 1] > centre) << 3
    bits |= int(gray[y, x - 1] > centre) << 4 | int(gray[y - 1, x - 1] > centre) << 5
    return bits | int(gray[y - 1, x] > centre) << 6 | int(gray[y - 1, x + 1] > centre) << 7
