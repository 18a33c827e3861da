"""Where in the image each feature looks and what it measures, for explanations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class FeatureParts:
    """For every feature of a descriptor, the rows of the image and the channel it comes from.

    `top` and `bottom` are the first row that a feature looks at and the row after the last, of the
    `height` rows that the image has after resizing; `channel` is an index into `channels`.
    """

    height: int
    channels: tuple[str, ...]
    top: NDArray[np.int16]  # (n_features,)
    bottom: NDArray[np.int16]  # (n_features,)
    channel: NDArray[np.int8]  # (n_features,)

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

    @classmethod
    def of_names(cls, height: int, channels: tuple[str, ...], names: Sequence[str]) -> FeatureParts:
        """Read the table off names of features, such as ``"hsv:scale0:rows5-15:h0s0v0"``."""
        found = (re.match(r"(\w+):.*?rows(\d+)-(\d+):", name) for name in names)
        channel, top, bottom = zip(*(match.groups() for match in found if match), strict=True)
        index = [channels.index(name) for name in channel]
        return cls.build(height, channels, list(map(int, top)), list(map(int, bottom)), index)
