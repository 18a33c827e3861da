"""The parts of an explanation: features grouped by strip of the image and channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.descriptors import descriptor
from resight.descriptors._base import FeatureParts

Floats = NDArray[np.float64]

N_BANDS = 8  # strips of equal height that are drawn over a crop
OCCLUSION = "occlusion"

_KINDS = dict.fromkeys(("hs", "hsv", "rgb", "lab"), "colour")
_KINDS |= dict.fromkeys(("siltp3", "siltp5", "lbp"), "texture") | {"hog": "edges"}
_GOG_KIND = "colour and edges"  # each of its spaces is joined with the gradients


@dataclass(frozen=True)
class Channel:
    """One channel of one descriptor."""

    descriptor: str
    name: str
    kind: str

    @property
    def title(self) -> str:
        """Name for tables, such as ``colour (lomo hsv)``."""
        return f"{self.kind} ({self.descriptor} {self.name})"


@dataclass(frozen=True, eq=False)
class Partition:
    """Features of descriptors put side by side, divided into parts.

    A part holds the features of one channel that begin within the same eighth of the image. Strips
    overlap and differ in height, so a part is spread over the bands that its features look at.
    """

    channels: tuple[Channel, ...]
    of_feature: NDArray[np.intp]  # (n_features,), the part of each feature
    channel: NDArray[np.intp]  # (n_parts,), the channel of each part
    bands: Floats  # (n_parts, N_BANDS), which share of a part's rows lies in each; they add up to 1


@lru_cache(maxsize=8)
def partition_of(descriptors: tuple[str, ...]) -> Partition:
    """Divide the features of descriptors, put side by side, into parts."""
    channels: list[Channel] = []
    keys, spreads = [], []
    for name in descriptors:
        parts = descriptor(name).feature_parts()
        first = (parts.top.astype(np.intp) * N_BANDS) // parts.height  # band that it begins in
        keys.append((parts.channel.astype(np.intp) + len(channels)) * N_BANDS + first)
        spreads.append(_spread(parts))
        kinds = dict.fromkeys(parts.channels, _GOG_KIND) if name.startswith("gog") else _KINDS
        channels += [Channel(name, channel, kinds[channel]) for channel in parts.channels]
    used, of_feature = np.unique(np.concatenate(keys), return_inverse=True)
    counts = np.bincount(of_feature)
    bands = [np.bincount(of_feature, column) / counts for column in np.concatenate(spreads).T]
    return Partition(tuple(channels), of_feature, used // N_BANDS, np.array(bands).T)


def _spread(parts: FeatureParts) -> Floats:
    """Which share of the rows of each feature lies in each band, (n_features, N_BANDS)."""
    edges = np.linspace(0.0, parts.height, N_BANDS + 1)
    top, bottom = parts.top[:, None].astype(float), parts.bottom[:, None].astype(float)
    inside = np.minimum(bottom, edges[1:]) - np.maximum(top, edges[:-1])
    return np.asarray(np.maximum(inside, 0.0) / (bottom - top))


def partition_for(model: Any) -> Partition:
    """Divide the features of a model; with a network, into one part for each strip and descriptor.

    What a network measures where is not known, so no feature belongs to a part then.
    """
    if not model.networks:
        return partition_of(model.descriptors)
    channels = tuple(Channel(part.name, "strips", OCCLUSION) for part in model.descriptor.parts)
    own, n = np.arange(len(channels)), model.descriptor.n_features
    bands = np.tile(np.eye(N_BANDS), (len(channels), 1))
    return Partition(channels, np.zeros(n, np.intp), np.repeat(own, N_BANDS), bands)
