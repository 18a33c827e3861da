"""Constants of WHOS: sizes, the masks that weigh pixels, and the codes of binary patterns."""

from __future__ import annotations

import numpy as np

from resight.images.colour import Floats

HEIGHT, WIDTH = 128, 64
STRIPE, STRIPE_STEP = 16, 8
WINDOW = (slice(8, 120), slice(8, 56))  # what HOG and LBP look at: the border is background
HOG_CELL, HOG_BINS, BLOCK = 8, 4, 2
LBP_CELL, LBP_CODES = 16, 58


def gaussian_mask() -> Floats:
    """Weigh pixels by a Gaussian about the centre (of WHOS-dagger), (128, 64)."""
    y, x = np.mgrid[1 : HEIGHT + 1, 1 : WIDTH + 1]
    across = (x - WIDTH / 2) ** 2 / (WIDTH / 4) ** 2
    return np.exp(-across - (y - HEIGHT / 2) ** 2 / (HEIGHT / 4) ** 2)


def epanechnikov_mask() -> Floats:
    """Weigh pixels by an Epanechnikov kernel about the centre (of WHOS-star), (128, 64)."""
    y, x = np.mgrid[1 : HEIGHT + 1, 1 : WIDTH + 1]
    across = ((x - (WIDTH + 1) / 2) / (WIDTH / 2)) ** 2
    return np.maximum(0.75 * (1.0 - across - ((y - (HEIGHT + 1) / 2) / (HEIGHT / 2)) ** 2), 0.0)


def lbp_table() -> np.ndarray:
    """Map 8 neighbour bits (E, SE, S, SW, W, NW, N, NE) to one of 58 codes, (256,) int64.

    56 codes are one run of ones: 7 * (where it starts) + (its length - 1); code 56 is "no or
    all ones"; code 57 is everything else.
    """
    table = np.full(256, 57)
    table[[0, 255]] = 56
    for start in range(8):
        for run in range(1, 8):
            bits = sum(1 << (start + i) % 8 for i in range(run))
            table[bits] = 7 * start + run - 1
    return table
