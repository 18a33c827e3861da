"""Compiled loops of LOMO; `tests/definitions` says the same in NumPy.

Nothing here is approximate: integers are counted, and floating-point values that are quantised
or compared go through the same operations in the same order as in the definition.
`describe` does everything in one call, so that a thread works for long without the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images._kernels import gray_levels, pixel_hsv
from resight.images.colour import Floats, Image

Codes = NDArray[np.int16]

FOUR = np.uint8(4)  # keeps levels in 8 bits


@kernel
def describe(
    image: Image,
    coloured: Image,
    starts: NDArray[np.int64],
    side: int,
    step: int,
    radii: tuple[int, int],
    weights: tuple[float, float, float],
    unit: Floats,
    logs: Floats,
) -> Floats:
    """Compute the whole descriptor.

    `starts` (3, n_scales + 1) counts the rows of blocks of each part before each scale.
    """
    last = starts.shape[1] - 1
    counts_of_colours = np.empty((starts[0, last], 512), np.int16)
    counts_of_patterns = np.empty((starts[1, last] + starts[2, last], 81), np.int16)
    hue, saturation, value = hsv_bins(coloured, unit)
    gray = gray_levels(image, weights) / 255.0
    for scale in range(last):
        if scale > 0:
            # Levels are averaged and rounded down.
            hue, saturation = sums_of_four(hue) // FOUR, sums_of_four(saturation) // FOUR
            value, gray = sums_of_four(value) // FOUR, sums_of_four(gray) / 4.0
        rows = counts_of_colours[starts[0, scale] : starts[0, scale + 1]]
        codes = hue + np.int16(8) * saturation + np.int16(64) * value
        strip_maxima(codes, side, step, rows)
        for i in range(2):
            before = i * starts[1, last]  # both radii share one array, one after the other
            begin, end = starts[1 + i, scale], starts[1 + i, scale + 1]
            if end > begin:
                rows = counts_of_patterns[before + begin : before + end]
                strip_maxima(siltp_codes(gray, radii[i]), side, step, rows)
    first = 512 * starts[0, last]
    second = first + 81 * starts[1, last]
    out = np.empty(second + 81 * starts[2, last])
    log_normalised(counts_of_colours, logs, out[:first])
    log_normalised(counts_of_patterns[: starts[1, last]], logs, out[first:second])
    log_normalised(counts_of_patterns[starts[1, last] :], logs, out[second:])
    return out


@kernel
def hsv_bins(image: Image, unit: Floats) -> tuple[Image, Image, Image]:
    """Quantise hue, saturation and value to 8 levels each: three maps (h, w).

    `unit` holds ``arange(256) / 255``: the division of the definition, done once per value.
    """
    height, width = image.shape[:2]
    bins = np.empty((3, height, width), np.uint8)
    for y in range(height):
        for x in range(width):
            red, green, blue = unit[image[y, x, 0]], unit[image[y, x, 1]], unit[image[y, x, 2]]
            hue, saturation, value = pixel_hsv(red, green, blue)
            bins[0, y, x] = min(int(8.0 * hue), 7)
            bins[1, y, x] = min(int(8.0 * saturation), 7)
            bins[2, y, x] = min(int(8.0 * value), 7)
    return bins[0], bins[1], bins[2]


@kernel
def sums_of_four(plane: NDArray[Any]) -> NDArray[Any]:
    """Add up 2 x 2 pixels, column by column as the original; an odd last line is dropped."""
    sums = np.empty((plane.shape[0] // 2, plane.shape[1] // 2), plane.dtype)
    for y in range(sums.shape[0]):
        above, below = plane[2 * y], plane[2 * y + 1]
        for x in range(sums.shape[1]):
            sums[y, x] = above[2 * x] + below[2 * x] + above[2 * x + 1] + below[2 * x + 1]
    return sums


@kernel
def siltp_codes(gray: Floats, radius: int) -> Codes:
    """Scale invariant local ternary patterns, E + 3 N + 9 W + 27 S, (h, w) int16.

    The image is copied into a frame that repeats its border, so that the inner loop has no
    branches and the compiler turns it into vector instructions.
    """
    height, width = gray.shape
    framed = np.empty((height + 2 * radius, width + 2 * radius))
    for y in range(height + 2 * radius):
        line = gray[min(max(y - radius, 0), height - 1)]
        for x in range(radius):
            framed[y, x] = line[0]
            framed[y, radius + width + x] = line[width - 1]
        for x in range(width):
            framed[y, radius + x] = line[x]
    codes = np.empty((height, width), np.int16)
    for y in range(height):
        for x in range(width):
            level = framed[y + radius, x + radius]
            low, high = 0.7 * level, 1.3 * level
            east = framed[y + radius, x + 2 * radius]
            north = framed[y, x + radius]
            west = framed[y + radius, x]
            south = framed[y + 2 * radius, x + radius]
            code = (east < low) + 2 * (east > high) + 3 * (north < low) + 6 * (north > high)
            code += 9 * (west < low) + 18 * (west > high)
            code += 27 * (south < low) + 54 * (south > high)
            codes[y, x] = code
    return codes


@kernel
def strip_maxima(codes: Codes, side: int, step: int, maxima: Codes) -> None:
    """Fill `maxima` (block rows, n_codes): how often each code occurs in its fullest block.

    The window slides to the right over a row of blocks: first the columns that leave are
    taken out, then those that enter are put in, so no count ever exceeds its final value and
    the maximum may be updated at every increment.
    """
    rows, columns = maxima.shape[0], (codes.shape[1] - side) // step + 1
    counts = np.empty(maxima.shape[1], np.int16)
    for row in range(rows):
        counts[:] = 0
        best = maxima[row]
        best[:] = 0
        top = row * step
        for column in range(columns):
            entering = 0 if column == 0 else (column - 1) * step + side
            for y in range(top, top + side):
                if column > 0:
                    for x in range((column - 1) * step, column * step):
                        counts[codes[y, x]] -= 1
            for y in range(top, top + side):
                for x in range(entering, column * step + side):
                    code = codes[y, x]
                    counts[code] += 1
                    best[code] = max(best[code], counts[code])


@kernel
def log_normalised(counts: Codes, logs: Floats, out: Floats) -> None:
    """Write log(1 + count) scaled to length 1 into `out`; `logs` holds log(1 + 0..100).

    Counts are small integers, so the length follows from how often each value occurs.
    """
    flat, often = counts.ravel(), np.zeros(len(logs), np.int64)
    for place in range(len(flat)):
        often[flat[place]] += 1
    scaled = logs * (1.0 / np.sqrt(np.sum(often * logs * logs)))
    for place in range(len(flat)):
        out[place] = scaled[flat[place]]
