"""Sums over all 5 x 5 patches of the products of pixel features, compiled.

With the constant 1 as one more feature, the sums of all products of a patch hold its pixel
count, its mean and its covariance; pixels outside the image are zeros and count nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.images.colour import Floats


def framed_planes(features: Floats) -> Floats:
    """Lay out features (h, w, c) for `patch_sums`: (c, h + 4, 2, w/2 + 2), framed by zeros.

    The third axis tells even from odd columns: patches start on every second pixel, and this
    way the sums below run over neighbours in memory.
    """
    height, width, count = features.shape
    planes = np.zeros((count, height + 4, 2, width // 2 + 2))
    for odd in (0, 1):
        planes[:, 2:-2, odd, 1:-1] = np.moveaxis(features[:, odd::2], -1, 0)
    return planes


@kernel(fast=True)
def patch_sums(planes: Floats, pairs: NDArray[np.int64]) -> Floats:
    """Sum the products of pairs of features over each patch, (n_pairs, h/2 * w/2).

    Parameters
    ----------
    planes : float64 array from `framed_planes`
    pairs : int64 array of shape (n_pairs, 2), indices of features
    """
    rows, columns = (planes.shape[1] - 4) // 2, planes.shape[3] - 2
    sums = np.empty((pairs.shape[0], rows * columns))
    even, odd = np.empty(columns + 2), np.empty(columns + 2)
    for pair in range(pairs.shape[0]):
        first, second = planes[pairs[pair, 0]], planes[pairs[pair, 1]]
        for row in range(rows):
            even[:] = 0.0
            odd[:] = 0.0
            for line in range(5):
                a_even, a_odd = first[2 * row + line, 0], first[2 * row + line, 1]
                b_even, b_odd = second[2 * row + line, 0], second[2 * row + line, 1]
                for x in range(columns + 2):
                    even[x] += a_even[x] * b_even[x]
                    odd[x] += a_odd[x] * b_odd[x]
            out = sums[pair, row * columns : (row + 1) * columns]
            for x in range(columns):
                out[x] = even[x] + odd[x] + even[x + 1] + odd[x + 1] + even[x + 2]
    return sums
