"""Explaining by occlusion: cover a strip of both images, describe them again, compare.

What a network measures where cannot be read off its vector, so this looks at nothing but distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.descriptors._base import Joined
from resight.explanation.parts import N_BANDS, Channel, Partition

Floats = NDArray[np.float64]
Image = NDArray[np.uint8]

OCCLUSION = "occlusion"
_GREY = (124, 116, 104)  # ImageNet's mean, which most networks are shown as nothing


def occlusion_partition(descriptor: Joined) -> Partition:
    """Return one part for each strip and descriptor."""
    channels = tuple(Channel(part.name, "strips", OCCLUSION) for part in descriptor.parts)
    n_channels = len(channels)
    return Partition(
        channels,
        np.zeros(descriptor.n_features, np.intp),
        np.repeat(np.arange(n_channels), N_BANDS),
        np.tile(np.eye(N_BANDS), (n_channels, 1)),
    )


def occlude(model: Any, pair: NDArray[Any], images: Sequence[Image]) -> Floats:
    """By how much the distance falls when one descriptor sees one strip covered, (n_parts,).

    `pair` (2, n_features) holds the descriptors of the two images as they are.
    """
    covered = [_covered(image, band) for image in images for band in range(N_BANDS)]
    described = model.describe(covered).reshape(2, N_BANDS, -1)
    ends = np.cumsum([0, *(part.n_features for part in model.descriptor.parts)])
    sides = []
    for whole, strips in zip(pair, described, strict=True):
        rows = np.repeat(whole[None], (len(ends) - 1) * N_BANDS, axis=0)
        for number, (start, stop) in enumerate(pairwise(ends)):
            part = slice(number * N_BANDS, (number + 1) * N_BANDS)
            rows[part, start:stop] = strips[:, start:stop]
        sides.append(np.concatenate([rows, whole[None]]))
    distances = np.diagonal(model.distances(*sides))
    return np.asarray(distances[-1] - distances[:-1])  # the last has nothing covered


def _covered(image: Image, band: int) -> Image:
    edges = np.linspace(0, len(image), N_BANDS + 1).round().astype(int)
    other = image.copy()
    other[edges[band] : edges[band + 1]] = _GREY
    return other
