"""Bicubic resizing with antialiasing, as MATLAB's ``imresize`` defines it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.images.check import as_rgb
from resight.images.colour import Floats, Image


def resize(image: Image, height: int, width: int) -> Image:
    """Resize an image with the Keys cubic, widened when shrinking so that nothing aliases.

    Parameters
    ----------
    image : uint8 array of shape (rows, columns, 3), RGB
    height, width : int
        Size of the result; an image that has this size already is returned as it is.

    Returns
    -------
    uint8 array of shape (height, width, 3)

    Notes
    -----
    One axis after the other, the one that shrinks most first, each rounded and clipped to
    0..255. Pixel centres lie at half integers and the image is mirrored at its border (Pillow
    cuts the kernel off there instead). The sums run tap by tap, in an order that depends on no
    BLAS library, so that a pixel never differs from one machine to the next.

    References
    ----------
    R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions
    on Acoustics, Speech, and Signal Processing 29(6), 1981.
    """
    if height < 1 or width < 1:
        raise InputError(f"cannot resize to {height} x {width}: both sides must be at least 1")
    image = as_rgb(image)
    rows, columns = image.shape[:2]
    if (rows, columns) == (height, width):
        return image
    from resight.images import _resize_kernels as compiled

    rows_first = height / rows <= width / columns
    return compiled.resized(image, taps(rows, height), taps(columns, width), rows_first)


@lru_cache(maxsize=64)
def taps(old: int, new: int) -> tuple[NDArray[np.intp], Floats]:
    """Say which old pixels make each new pixel, and with what weights of sum 1, (n_taps, new)."""
    scale = new / old
    stretch = min(scale, 1.0)  # the kernel is widened when shrinking, never narrowed
    reach = 4.0 / stretch
    centres = (np.arange(new) + 0.5) / scale - 0.5
    first = np.floor(centres - reach / 2.0)
    positions = first + np.arange(int(np.ceil(reach)) + 2)[:, None]  # (n_taps, new)
    weights = _keys_cubic(stretch * (centres - positions))
    used = weights.any(axis=1)
    positions, weights = positions[used], weights[used] / weights.sum(axis=0)
    mirrored = np.concatenate([np.arange(old), np.arange(old)[::-1]])
    return mirrored[positions.astype(np.intp) % (2 * old)], weights


def _keys_cubic(x: Floats) -> Floats:
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x <= 2.0, far, 0.0))
