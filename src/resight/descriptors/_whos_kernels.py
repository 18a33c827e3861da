"""WHOS in one compiled call, so that a thread works for long without the GIL."""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.descriptors._whos_colour_kernels import stripe_histograms
from resight.descriptors._whos_texture_kernels import Codes, gray_levels, hog_blocks, lbp_cells
from resight.images.colour import Floats, Image


@kernel
def describe(
    image: Image,
    window: Image,
    mask: Floats,
    scales: Floats,
    weights: tuple[float, float, float],
    table: Codes,
    n_channels: int,
) -> Floats:
    """Compute the whole descriptor: with 3 colour channels WHOS-dagger, with 2 WHOS-star."""
    colours, hog = n_channels * 15 * 64, 13 * 5 * 16
    patterns = 7 * 3 * 58 if n_channels == 3 else 0
    out = np.empty(colours + hog + patterns)
    stripe_histograms(image, mask, scales, 8, n_channels, out[:colours])
    hog_blocks(window, 8, 4, out[colours : colours + hog])
    if n_channels == 3:
        lbp_cells(gray_levels(window, weights), table, 16, 58, out[colours + hog :])
    for i in range(out.shape[0]):
        out[i] = np.sqrt(out[i])
    return out
