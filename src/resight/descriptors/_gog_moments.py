"""Sums over all 5 x 5 patches of the products of pixel features, compiled.

With the constant 1 as one more feature, the sums of all products of a patch hold its pixel
count, its mean and its covariance; pixels outside the image are zeros and count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Floats


def framed_planes(features: Sequence[Floats]) -> Floats:
    """Lay out groups of features (h, w, any) for `patch_sums`: planes (n, h + 4, w + 4).

    After all groups follow the features that are 0 and 1 everywhere. Every plane has a frame of
    zeros, and each of its rows holds first the even columns, then the odd ones: patches start
    on every second pixel, and this way the sums run over neighbours in memory.
    """
    height, width = features[0].shape[:2]
    count = sum(group.shape[2] for group in features)
    planes = np.zeros((count + 2, height + 4, 2, width // 2 + 2))
    inside = planes[:, 2:-2, :, 1:-1]  # (n, h, 2, w / 2)
    start = 0
    for group in features:
        columns = group.reshape(height, width // 2, 2, -1)
        inside[start : start + group.shape[2]] = columns.transpose(3, 0, 2, 1)
        start += group.shape[2]
    inside[-1] = 1.0
    return planes.reshape(count + 2, height + 4, width + 4)


@kernel(fast=True)
def patch_sums(planes: Floats, pairs: NDArray[np.int64]) -> Floats:
    """Sum the products of pairs of `planes` over each patch, (n_pairs, h/2 * w/2)."""
    rows, half = (planes.shape[1] - 4) // 2, planes.shape[2] // 2
    columns = half - 2
    sums = np.empty((pairs.shape[0], rows * columns))
    line = np.empty(2 * half)
    for pair in range(pairs.shape[0]):
        a, b = planes[pairs[pair, 0]], planes[pairs[pair, 1]]
        for row in range(rows):
            a0, a1, a2, a3, a4 = _five_lines(a, 2 * row)
            b0, b1, b2, b3, b4 = _five_lines(b, 2 * row)
            for x in range(2 * half):
                line[x] = a0[x] * b0[x] + a1[x] * b1[x] + a2[x] * b2[x] + a3[x] * b3[x]
                line[x] += a4[x] * b4[x]
            even, odd = line[:half], line[half:]
            out = sums[pair, row * columns : (row + 1) * columns]
            for x in range(columns):
                out[x] = even[x] + odd[x] + even[x + 1] + odd[x + 1] + even[x + 2]
    return sums


@kernel(fast=True)
def _five_lines(plane: Floats, top: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    return plane[top], plane[top + 1], plane[top + 2], plane[top + 3], plane[top + 4]
