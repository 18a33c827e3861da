"""LOMO in plain NumPy: slow, short, and what the compiled kernels are tested against."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from definitions.colour import gray
from resight.images import colour
from resight.images.colour import Floats, Image

LEVELS = 8  # of hue, saturation and value: 512 joint colours
TAU = 0.3  # neighbours within 30 % of the centre count as alike
RADII = (3, 5)
SIDE, STEP, SCALES = 10, 5, 3


def lomo_definition(image: Image, coloured: Image) -> Floats:
    """Describe `image`, taking colours from `coloured` (its Retinex image, or itself)."""
    parts = [_hsv_counts(coloured), *(_siltp_counts(image, radius) for radius in RADII)]
    logs = [np.log(part + 1.0) for part in parts]
    return np.concatenate([part / max(float(np.linalg.norm(part)), 1e-300) for part in logs])


def hsv_bins(image: Image) -> Image:
    """Quantise hue, saturation and value to 8 levels each, (3, h, w)."""
    levels = np.minimum(np.floor(LEVELS * colour.hsv(image)), LEVELS - 1)
    return np.moveaxis(levels, -1, 0).astype(np.uint8)


def siltp(gray: Floats, radius: int) -> np.ndarray:
    """Code each pixel by its neighbours E, N, W, S: 1 if darker, 2 if brighter, else 0."""
    height, width = gray.shape
    framed = np.pad(gray, radius, mode="edge")
    rows, columns = np.arange(height) + radius, np.arange(width) + radius
    codes = np.zeros((height, width), np.int64)
    for place, (dy, dx) in enumerate([(0, radius), (-radius, 0), (0, -radius), (radius, 0)]):
        neighbour = framed[np.ix_(rows + dy, columns + dx)]
        darker, brighter = neighbour < (1 - TAU) * gray, neighbour > (1 + TAU) * gray
        codes += 3**place * (darker + 2 * brighter)
    return codes


def halved(maps: np.ndarray) -> np.ndarray:
    """Average the last two axes over 2 x 2 pixels (sum only; the caller divides)."""
    height, width = maps.shape[-2] // 2 * 2, maps.shape[-1] // 2 * 2
    maps = maps[..., :height, :width]
    return maps[..., ::2, ::2] + maps[..., 1::2, ::2] + maps[..., ::2, 1::2] + maps[..., 1::2, 1::2]


def strip_maxima(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Histogram 10 x 10 blocks every 5 pixels; keep each code's maximum along a row of blocks."""
    blocks = sliding_window_view(codes, (SIDE, SIDE))[::STEP, ::STEP]  # (rows, columns, 10, 10)
    one_hot = blocks[..., None] == np.arange(n_codes)
    return one_hot.sum(axis=(2, 3)).max(axis=1)  # (rows, n_codes)


def _hsv_counts(image: Image) -> np.ndarray:
    bins = hsv_bins(image).astype(np.int64)
    counts = []
    for _ in range(SCALES):
        if min(bins.shape[1:]) < SIDE:
            break
        codes = bins[0] + LEVELS * bins[1] + LEVELS**2 * bins[2]
        counts.append(strip_maxima(codes, LEVELS**3).ravel())
        bins = halved(bins) // 4
    return np.concatenate(counts)


def _siltp_counts(image: Image, radius: int) -> np.ndarray:
    levels = gray(image) / 255.0
    counts = [np.empty(0, np.int64)]
    for _ in range(SCALES):
        if min(levels.shape) < SIDE:
            break
        if min(levels.shape) >= 2 * radius + 1:
            counts.append(strip_maxima(siltp(levels, radius), 81).ravel())
        levels = halved(levels) / 4.0
    return np.concatenate(counts)
