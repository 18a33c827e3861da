"""Compiled loops of the multi-scale Retinex: recursive Gaussian blur, logarithm, stretch.

A recursive filter costs the same at every width. Lines are filtered side by side: the inner
loop runs over independent values, so the compiler turns it into vector instructions.
`retinex_image` does everything in one call, so that a thread works for long without the GIL.
"""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.images.colour import Floats, Image


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
    turned = image.reshape(height, width, 3).transpose(1, 0, 2)
    return np.ascontiguousarray(turned).reshape(width, 3 * height)


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
