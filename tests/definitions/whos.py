"""WHOS in plain NumPy: slow, short, and what the compiled kernels are tested against."""

from __future__ import annotations

import numpy as np

from definitions.colour import gray, ruzon_lab
from resight.descriptors.whos import (
    BLOCK,
    HEIGHT,
    HOG_BINS,
    HOG_CELL,
    LBP_CELL,
    LBP_CODES,
    STRIPE,
    STRIPE_STEP,
    WINDOW,
    centre_mask,
    lbp_table,
)
from resight.images import colour
from resight.images.colour import Floats, Image


def whos_definition(image: Image, variant: str) -> Floats:
    """Describe a 128 x 64 image; `variant` is "dagger" or "star"."""
    weights = centre_mask(variant)
    stripes = [slice(top, top + STRIPE) for top in range(0, HEIGHT - STRIPE + 1, STRIPE_STEP)]
    bins_of = [hs_bins, rgb_bins] + [lab_bins] * (variant == "dagger")
    parts = [histogram(bins(image[s]), weights[s]) for bins in bins_of for s in stripes]
    parts.append(hog(image[WINDOW]))
    if variant == "dagger":
        parts.append(lbp(gray(image[WINDOW])).transpose(2, 1, 0).ravel())
    return np.sqrt(np.concatenate(parts))


def rgb_bins(image: Image) -> np.ndarray:
    """Quantise red, green and blue to 4 levels each, red fastest."""
    levels = image.astype(np.int64) // 64
    return levels[..., 0] + 4 * levels[..., 1] + 16 * levels[..., 2]


def hs_bins(image: Image) -> np.ndarray:
    """Quantise hue and saturation to 8 levels each, hue fastest."""
    levels = np.floor(colour.hsv(image)[..., :2] / (1.01 / 8.0)).astype(np.int64)
    return levels[..., 0] + 8 * levels[..., 1]


def lab_bins(image: Image) -> np.ndarray:
    """Quantise L, a and b to 4 levels each, L fastest; a and b at -55, 0 and 55."""
    scale = 255.0 if image.max() > 1 else 1.0
    values = ruzon_lab(image, scale)
    lightness = np.clip(np.floor(values[..., 0] / 25.25), 0, 3)
    opponents = [sum(values[..., axis] > edge for edge in (-55.0, 0.0, 55.0)) for axis in (1, 2)]
    return lightness.astype(np.int64) + 4 * opponents[0] + 16 * opponents[1]


def histogram(bins: np.ndarray, weights: Floats) -> Floats:
    """Sum the weights of each of 64 bins and scale to length 1."""
    counts = np.bincount(bins.ravel(), weights.ravel(), 64)
    return counts / max(float(np.linalg.norm(counts)), 1e-300)


def hog(image: Image) -> Floats:
    """Histograms of oriented gradients, blocks column by column, (n_blocks * 16,)."""
    magnitude, angle = gradients(image)
    rows, columns = (size // HOG_CELL for size in magnitude.shape)
    cells = np.zeros((rows + 2, columns + 2, HOG_BINS))
    place = [(np.arange(size) + 0.5) / HOG_CELL + 0.5 for size in magnitude.shape]
    turn = angle / (np.pi / HOG_BINS) - 0.5
    for dy, dx, turned in np.ndindex(2, 2, 2):
        y, wy = _vote(place[0], dy)
        x, wx = _vote(place[1], dx)
        k, wk = _vote(turn, turned)
        votes = magnitude * wy[:, None] * wx * wk
        np.add.at(cells, (y[:, None], x[None], k % HOG_BINS), votes)
    cells = cells[1:-1, 1:-1]
    blocks = [
        _unit(cells[y : y + BLOCK, x : x + BLOCK])
        for x in range(columns - 1)
        for y in range(rows - 1)
    ]
    return np.concatenate([block.ravel() for block in blocks])


def gradients(image: Image) -> tuple[Floats, Floats]:
    """Magnitude and unsigned angle in [0, pi) of the channel that changes most, (h, w) each."""
    framed = np.pad(image.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    dx = framed[1:-1, 2:] - framed[1:-1, :-2]
    dy = framed[:-2, 1:-1] - framed[2:, 1:-1]
    most = np.argmax(dx**2 + dy**2, axis=-1)[..., None]
    dx, dy = (np.take_along_axis(d, most, axis=-1)[..., 0] for d in (dx, dy))
    angle = np.arctan2(dy, dx)
    return np.hypot(dx, dy), np.where(angle < 0.0, angle + np.pi, angle)


def lbp(gray: Image) -> Floats:
    """Uniform local binary patterns pooled bilinearly into 16 x 16 cells, (7, 3, 58)."""
    rows, columns = (size // LBP_CELL for size in gray.shape)
    codes = lbp_table()[neighbour_bits(gray)]  # of the inner pixels
    cells = np.zeros((rows + 2, columns + 2, LBP_CODES))
    place = [(np.arange(1, size - 1) + 0.5) / LBP_CELL + 0.5 for size in gray.shape]
    for dy, dx in np.ndindex(2, 2):
        y, wy = _vote(place[0], dy)
        x, wx = _vote(place[1], dx)
        np.add.at(cells, (y[:, None], x[None], codes), wy[:, None] * wx)
    cells = cells[1:-1, 1:-1]
    return np.sqrt(cells) / (np.sqrt(cells.sum(axis=2, keepdims=True)) + 1e-10)


def neighbour_bits(gray: Image) -> np.ndarray:
    """Set a bit for every neighbour brighter than the pixel, (h - 2, w - 2)."""
    around = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
    height, width = gray.shape
    centre = gray[1:-1, 1:-1]
    bits = np.zeros(centre.shape, np.int64)
    for place, (dy, dx) in enumerate(around):
        neighbour = gray[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]
        bits |= (neighbour > centre).astype(np.int64) << place
    return bits


def _vote(position: Floats, upper: int) -> tuple[np.ndarray, Floats]:
    """Index of the lower or upper neighbouring cell, and its share of a linear vote."""
    lower = np.floor(position)
    share = position - lower
    return lower.astype(np.int64) + upper, share if upper else 1.0 - share


def _unit(values: Floats) -> Floats:
    length = float(np.linalg.norm(values))
    return values / length if length > 0.0 else values
