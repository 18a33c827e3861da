"""Compiled HOG votes and LBP counts of WHOS; `tests/definitions` says the same in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.descriptors._pixel_kernels import pixel_gray
from resight.images.colour import Floats, Image

Codes = NDArray[np.int64]


@kernel(fast=True)
def hog_blocks(image: Image, cell: int, n_bins: int, out: Floats) -> None:
    """Fill `out` with blocks of 2 x 2 cells, each of length 1, column by column."""
    votes = _hog_votes(image, cell, n_bins)  # (rows + 2, columns + 2, n_bins)
    at = 0
    for column in range(1, votes.shape[1] - 2):
        for row in range(1, votes.shape[0] - 2):
            begin, total = at, 0.0
            for i in range(2):
                for j in range(2):
                    for k in range(n_bins):
                        out[at] = votes[row + i, column + j, k]
                        total += out[at] * out[at]
                        at += 1
            scale = 1.0 / np.sqrt(total) if total > 0.0 else 0.0
            for i in range(begin, at):
                out[i] *= scale


@kernel(fast=True)
def _hog_votes(image: Image, cell: int, n_bins: int) -> Floats:
    """Spread each gradient over the nearest 2 x 2 cells and 2 angles, linearly in each."""
    height, width = image.shape[:2]
    votes = np.zeros((height // cell + 2, width // cell + 2, n_bins))
    for y in range(height):
        down = (y + 0.5) / cell + 0.5
        row = int(down)
        lower = down - row
        for x in range(width):
            dx, dy = _strongest_change(image, y, x)
            magnitude = np.sqrt(float(dx * dx + dy * dy))
            if magnitude == 0.0:
                continue
            angle = np.arctan2(float(dy), float(dx))
            turn = (angle + np.pi if angle < 0.0 else angle) * (n_bins / np.pi) - 0.5
            first = int(np.floor(turn))
            share = turn - first
            second = (first + 1) % n_bins
            first %= n_bins
            across = (x + 0.5) / cell + 0.5
            column = int(across)
            right = across - column
            for i in range(2):
                for j in range(2):
                    weight = magnitude * (lower if i else 1.0 - lower)
                    weight *= right if j else 1.0 - right
                    votes[row + i, column + j, first] += weight * (1.0 - share)
                    votes[row + i, column + j, second] += weight * share
    return votes


@kernel
def _strongest_change(image: Image, y: int, x: int) -> tuple[int, int]:
    """Centred differences of the channel that changes most; outside the image all is black."""
    height, width = image.shape[:2]
    best, best_dx, best_dy = -1, 0, 0
    for c in range(3):
        right = int(image[y, x + 1, c]) if x + 1 < width else 0
        left = int(image[y, x - 1, c]) if x > 0 else 0
        above = int(image[y - 1, x, c]) if y > 0 else 0
        below = int(image[y + 1, x, c]) if y + 1 < height else 0
        dx, dy = right - left, above - below
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
        down = (y + 0.5) / cell + 0.5
        row = int(down)
        lower = down - row
        for x in range(1, width - 1):
            code = table[_neighbour_bits(gray, y, x)]
            across = (x + 0.5) / cell + 0.5
            column = int(across)
            right = across - column
            counts[row, column, code] += (1.0 - lower) * (1.0 - right)
            counts[row, column + 1, code] += (1.0 - lower) * right
            counts[row + 1, column, code] += lower * (1.0 - right)
            counts[row + 1, column + 1, code] += lower * right
    for row in range(rows):
        for column in range(columns):
            total = 0.0
            for code in range(n_codes):
                total += counts[row + 1, column + 1, code]
            scale = 1.0 / (np.sqrt(total) + 1e-10)
            for code in range(n_codes):
                share = np.sqrt(counts[row + 1, column + 1, code]) * scale
                out[(code * columns + column) * rows + row] = share


@kernel
def gray_levels(image: Image, weights: tuple[float, float, float]) -> Codes:
    """Gray levels 0..255, (h, w)."""
    height, width = image.shape[:2]
    gray = np.empty((height, width), np.int64)
    for y in range(height):
        for x in range(width):
            gray[y, x] = pixel_gray(image[y, x, 0], image[y, x, 1], image[y, x, 2], weights)
    return gray


@kernel
def _neighbour_bits(gray: Codes, y: int, x: int) -> int:
    """Set a bit for each brighter neighbour: E, SE, S, SW, W, NW, N, NE."""
    centre = gray[y, x]
    bits = int(gray[y, x + 1] > centre) | int(gray[y + 1, x + 1] > centre) << 1
    bits |= int(gray[y + 1, x] > centre) << 2 | int(gray[y + 1, x - 1] > centre) << 3
    bits |= int(gray[y, x - 1] > centre) << 4 | int(gray[y - 1, x - 1] > centre) << 5
    return bits | int(gray[y - 1, x] > centre) << 6 | int(gray[y - 1, x + 1] > centre) << 7
