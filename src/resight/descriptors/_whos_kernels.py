"""WHOS in one compiled call, so that a thread works for long without the GIL."""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.descriptors._whos_colour_kernels import stripe_histograms
from resight.descriptors._whos_texture_kernels import Codes, gray_levels, hog_blocks, lbp_cells
from resight.images.colour import Floats, Image


@kernel
def describe_star(image: Image, window: Image, mask: Floats, scales: Floats) -> Floats:
    """WHOS-star: square roots of HS and RGB histograms and HOG."""
    colours = stripe_histograms(image, mask, scales, 8, 2)
    return np.sqrt(np.concatenate((colours.reshape(-1), hog_blocks(window, 8, 4))))


@kernel
def describe_dagger(
    image: Image,
    window: Image,
    mask: Floats,
    scales: Floats,
    weights: tuple[float, float, float],
    table: Codes,
) -> Floats:
    """WHOS-dagger: square roots of HS, RGB and Lab histograms, HOG and LBP."""
    colours = stripe_histograms(image, mask, scales, 8, 3)
    patterns = lbp_cells(gray_levels(window, weights), table, 16, 58)
    parts = (colours.reshape(-1), hog_blocks(window, 8, 4), patterns.reshape(-1))
    return np.sqrt(np.concatenate(parts))
