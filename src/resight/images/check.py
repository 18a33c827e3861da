"""Whether an array is an image that descriptors can measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from resight.errors import InputError
from resight.images.colour import Image


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
