"""Images as arrays: whether one can be measured, boxes cut out of it, and bicubic resizing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.images.colour import Floats, Image

MIN_HEIGHT, MIN_WIDTH = 32, 12  # the smallest crop that can show a person


def as_rgb(image: Any) -> Image:
    """Check one image and return it as contiguous, writable RGB, copying only if it is not.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3)
        RGB; OpenCV reads images as BGR, which ``image[..., ::-1]`` turns round.

    Returns
    -------
    uint8 array of shape (height, width, 3), RGB

    Raises
    ------
    InputError
        If it is no array, not of type uint8, not of that shape or empty. Floats are not
        guessed at: whether 1.0 means white or almost black only the caller knows.
    """
    if not isinstance(image, np.ndarray):
        raise InputError(
            f"an image must be a NumPy array, not {type(image).__name__}; to read a "
            "file, use resight.images.read(path)"
        )
    if image.dtype != np.uint8:
        raise InputError(_wrong_type(image))
    if image.ndim != 3 or image.shape[2] != 3:
        raise InputError(_wrong_shape(image.shape))
    if image.size == 0:
        raise InputError(f"the image of shape {image.shape} is empty; it needs at least one pixel")
    # Writable, because kernels would be compiled once more for arrays that are not.
    return np.require(image, requirements=["C", "W"])


def _wrong_type(image: np.ndarray) -> str:
    text = f"an image must be uint8 (0..255), not {image.dtype}"
    if np.issubdtype(image.dtype, np.floating):
        if not np.isfinite(image).all():
            return f"{text}, and this one has NaN or infinite values; check how it was computed"
        return f"{text}; convert values in [0, 1] with np.round(255 * image).astype(np.uint8)"
    return f"{text}; rescale it to 0..255 and convert with astype(np.uint8)"


def _wrong_shape(shape: tuple[int, ...]) -> str:
    text = f"an image must have shape (height, width, 3), not {shape}"
    advice = {
        len(shape) == 2: "repeat a gray image with np.repeat(image[..., None], 3, axis=2)",
        len(shape) == 4: "give one image at a time, or a list of them to a transformer",
        len(shape) == 3 and shape[0] == 3: "channels come last: np.moveaxis(image, 0, -1)",
        len(shape) == 3 and shape[2] == 4: "drop the alpha channel with image[..., :3]",
    }
    return f"{text}; {advice.get(True, 'the last axis is red, green and blue')}"


def inside(image: Image, box: Sequence[int]) -> Image:
    """Return the part of an image that a box covers; empty if the box lies outside."""
    x, y, width, height = (int(value) for value in box)
    return image[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]


def cut(image: Image, box: Sequence[int]) -> Image:
    """Cut a box out, clipped to the image; refuse one that lies outside."""
    crop = inside(image, box)
    if crop.size == 0:
        x, y, width, height = (int(value) for value in box)
        raise InputError(
            f"box x={x} y={y} w={width} h={height} is outside the image of "
            f"{image.shape[1]} x {image.shape[0]} pixels"
        )
    return np.ascontiguousarray(crop)


def resize(image: Image, height: int, width: int) -> Image:
    """Resize an image as MATLAB does: the Keys cubic, widened when shrinking against aliasing.

    An image that has this size already is returned as it is. One axis after the other, the one
    that shrinks most first, each rounded and clipped to 0..255. Pixel centres lie at half integers
    and the image is mirrored at its border (Pillow cuts the kernel off there instead). The sums run
    tap by tap, in an order that depends on no BLAS library, so that a pixel never differs from one
    machine to the next. The cubic is that of R. Keys, "Cubic convolution interpolation for digital
    image processing", IEEE Transactions on Acoustics, Speech, and Signal Processing 29(6), 1981.
    """
    if height < 1 or width < 1:
        raise InputError(f"cannot resize to {height} x {width}: both sides must be at least 1")
    image = as_rgb(image)
    rows, columns = image.shape[:2]
    if (rows, columns) == (height, width):
        return image
    from resight.images import _kernels as compiled  # numba is loaded only when needed

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
    weights = _keys_cubic(np.asarray(stretch * (centres - positions), np.float64))
    used = weights.any(axis=1)
    positions, weights = positions[used], weights[used] / weights.sum(axis=0)
    mirrored = np.concatenate([np.arange(old), np.arange(old)[::-1]])
    return mirrored[positions.astype(np.intp) % (2 * old)], weights


def _keys_cubic(x: Floats) -> Floats:
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x <= 1.0, near, np.where(x <= 2.0, far, 0.0))
