"""Compiled loops over pixels: colours, resizing, and the multi-scale Retinex.

Colour conversions do the operations of `resight.images.colour`, their oracle, in the same order:
what they give is quantised, and the last bit can decide a bin. Resizing sums tap by tap in a fixed
order. A recursive filter costs the same at every width: in its blur, lines are filtered side by
side, so that the inner loop runs over independent values and becomes vector instructions.
`resized` and `retinex_image` do everything in one call, so that a thread works for long without
the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Floats, Image

Taps = tuple[NDArray[np.intp], Floats]


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


@kernel
def resized(image: Image, down: Taps, along: Taps, rows_first: bool) -> Image:
    """Resize both axes of (rows, columns, 3), in one call that holds no GIL."""
    if rows_first:
        return turned(first_axis(turned(first_axis(image, down)), along))
    return first_axis(turned(first_axis(turned(image), along)), down)


@kernel
def turned(image: NDArray[Any]) -> NDArray[Any]:
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


@kernel
def retinex_image(
    image: Image, filters: Floats, tails: Floats, logs: Floats, spread: float
) -> Image:
    """Compute the whole Retinex with two blurs: `filters` (2, 4) and `tails` (2, 3, 3)."""
    height, width = image.shape[0], 3 * image.shape[1]
    flat = image.reshape(height, width)
    plane = flat + 1.0  # so that black has a logarithm
    first = blurred_image(plane, filters[0], tails[0])
    second = blurred_image(plane, filters[1], tails[1])
    values = reflectance(flat, logs, first, second)
    mean, squares = np.mean(values), 0.0
    for value in values.ravel():
        squares += (value - mean) ** 2
    deviation = np.sqrt(squares / values.size)
    if deviation < 1e-9:  # one colour: what is left is rounding noise
        return image.copy()
    return stretched(values, mean - spread * deviation, 255.0 / (2.0 * spread * deviation))


@kernel
def blurred_image(plane: Floats, filter_: Floats, tail: Floats) -> Floats:
    """Blur an image of 3 interleaved channels, (h, 3 * w), along both axes."""
    down = blurred(plane, filter_, tail)
    return transposed(blurred(transposed(down), filter_, tail))


@kernel(fast=True)
def blurred(lines: Floats, filter_: Floats, tail: Floats) -> Floats:
    """Blur along the first axis of (n, m) `lines`: forward, then backward recursion.

    Outside, the first and the last line go on for ever: the forward pass starts in the steady
    state of the first line, the backward pass in the state that `tail` gives for the last one.
    `filter_` holds (gain, b1, b2, b3): w[n] = gain x[n] + b1 w[n-1] + b2 w[n-2] + b3 w[n-3].
    """
    n, m = lines.shape
    gain, b1, b2, b3 = filter_[0], filter_[1], filter_[2], filter_[3]
    out = np.empty((n + 3, m))  # three lines behind the end hold the backward pass's start
    for y in range(n):
        one, two, three = out[max(y - 1, 0)], out[max(y - 2, 0)], out[max(y - 3, 0)]
        line, target = lines[y], out[y]
        if y == 0:
            target[:] = line
            continue
        for x in range(m):
            target[x] = gain * line[x] + b1 * one[x] + b2 * two[x] + b3 * three[x]
    last = lines[n - 1]
    one, two, three = out[n - 1], out[max(n - 2, 0)], out[max(n - 3, 0)]
    for k in range(3):
        target = out[n + k]
        t1, t2, t3 = tail[k, 0], tail[k, 1], tail[k, 2]
        rest = 1.0 - t1 - t2 - t3
        for x in range(m):
            target[x] = t1 * one[x] + t2 * two[x] + t3 * three[x] + rest * last[x]
    for step in range(n):
        y = n - 1 - step
        target, one, two, three = out[y], out[y + 1], out[y + 2], out[y + 3]
        for x in range(m):
            target[x] = gain * target[x] + b1 * one[x] + b2 * two[x] + b3 * three[x]
    return out[:n]


@kernel
def transposed(image: Floats) -> Floats:
    """Swap the two image axes of (h, w * c) pixels with c = 3 values each: (w, h * c)."""
    height, width = image.shape[0], image.shape[1] // 3
    return turned(image.reshape(height, width, 3)).reshape(width, 3 * height)


@kernel(fast=True)
def reflectance(flat: Image, logs: Floats, first: Floats, second: Floats) -> Floats:
    """Multi-scale Retinex of two blurs: log x - (log a + log b) / 2, one logarithm for both."""
    height, width = flat.shape
    out = np.empty((height, width))
    for y in range(height):
        for x in range(width):
            out[y, x] = logs[flat[y, x]] - 0.5 * np.log(first[y, x] * second[y, x])
    return out


@kernel
def stretched(values: Floats, low: float, scale: float) -> Image:
    """Stretch (h, 3 * w) `values` linearly to 0..255 and round: an image (h, w, 3)."""
    height, width = values.shape
    out = np.empty((height, width), np.uint8)
    for y in range(height):
        for x in range(width):
            out[y, x] = int(min(max((values[y, x] - low) * scale, 0.0), 255.0) + 0.5)
    return out.reshape(height, width // 3, 3)
