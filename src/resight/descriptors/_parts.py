"""Where in the image each feature looks and what it measures, for explanations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class FeatureParts:
    """For every feature of a descriptor, the rows of the image and the channel it comes from.

    Attributes
    ----------
    height : int
        Height in pixels of the image that the descriptor measures (after resizing).
    channels : tuple of str
        Names of the channels, such as ``("hsv", "siltp3", "siltp5")``.
    top, bottom : int16 arrays of shape (n_features,)
        First row, and the row after the last, that the feature looks at.
    channel : int8 array of shape (n_features,)
        Index into `channels`.
    """

    height: int
    channels: tuple[str, ...]
    top: NDArray[np.int16]
    bottom: NDArray[np.int16]
    channel: NDArray[np.int8]

    @classmethod
    def build(
        cls,
        height: int,
        channels: tuple[str, ...],
        top: ArrayLike,
        bottom: ArrayLike,
        channel: ArrayLike,
    ) -> FeatureParts:
        """Make the table from anything that NumPy turns into integer arrays."""
        rows = np.asarray(top, np.int16), np.asarray(bottom, np.int16)
        return cls(height, channels, *rows, np.asarray(channel, np.int8))
