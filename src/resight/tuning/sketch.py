"""Short vectors in which squared distances between long ones survive.

Signs that look random are given to the features of a block, and features a fixed number apart are
added. Squared distances are then right on average, with a standard error of sqrt(2 / width) of
themselves: 3% for one descriptor, where those between people differ by some 20%.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 2047
"""Numbers that a descriptor is shortened to, shared by its blocks; odd, so that features a power
of two apart are not added to each other."""


def shortened(rows: NDArray[Any], n_blocks: int = 1) -> NDArray[Any]:
    """Shorten a block (n, d) of a descriptor of so many blocks; left alone where it is short."""
    width = WIDTH // n_blocks
    n, d = rows.shape
    if d <= width:
        return rows
    out = np.zeros((n, width), rows.dtype)
    signs = _signs(d).astype(rows.dtype)
    for start in range(0, d, width):
        part = slice(start, min(start + width, d))
        out[:, : part.stop - start] += rows[:, part] * signs[part]
    return out


def shares(rows: NDArray[Any], n_blocks: int = 1) -> NDArray[Any]:
    """Return what each feature adds to the squared length of a shortened row, (n, d)."""
    short = shortened(rows, n_blocks)
    if short is rows:
        return rows**2
    d = rows.shape[1]
    return rows * short[:, np.arange(d) % short.shape[1]] * _signs(d)


def _signs(d: int) -> NDArray[np.float64]:
    """Return +1 and -1 by hashing places (splitmix64): the same with every version of numpy."""
    x = np.arange(1, d + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return 1.0 - 2.0 * (x >> np.uint64(63)).astype(np.float64)
