"""The published descriptors and their parameters, without scikit-learn: all that describing needs.

A search starts in a fraction of the time that importing scikit-learn takes. `transformers` makes
scikit-learn's transformers of these.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.descriptors import plain
from resight.descriptors.gog import GOG_BLOCKS, gog
from resight.descriptors.gog import VERSION as GOG_VERSION
from resight.descriptors.gog import feature_names as gog_names
from resight.descriptors.lomo import VERSION as LOMO_VERSION
from resight.descriptors.lomo import feature_names as lomo_names
from resight.descriptors.lomo import lomo
from resight.descriptors.whos import VERSION as WHOS_VERSION
from resight.descriptors.whos import feature_names as whos_names
from resight.descriptors.whos import whos
from resight.images.check import as_rgb
from resight.images.colour import Floats, Image
from resight.images.grey_world import grey_world
from resight.images.resize import resize
from resight.images.retinex import retinex


@dataclass(frozen=True)
class FeatureParts:
    """For every feature of a descriptor, the rows of the image and the channel it comes from.

    `top` and `bottom` are the first row that a feature looks at and the row after the last, of the
    `height` rows that the image has after resizing; `channel` is an index into `channels`.
    """

    height: int
    channels: tuple[str, ...]
    top: NDArray[np.intp]  # (n_features,)
    bottom: NDArray[np.intp]  # (n_features,)
    channel: NDArray[np.intp]  # (n_features,)


class PlainDescriptor(ABC):
    """Turns images into vectors, without learning anything.

    It implements `describe_once` and says its `name`, `blocks` and `version`, and the `size`
    (height and width) to which it brings images.
    """

    mirror: bool
    size: tuple[int, int]
    batch = 1  # images that are described at once; see `describe_batch`

    @property
    @abstractmethod
    def name(self) -> str:
        """Name on the command line and in files."""

    @property
    @abstractmethod
    def version(self) -> int:
        """Number of the algorithm: raised whenever it gives other numbers."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks that are centred and scaled separately before learning."""

    @abstractmethod
    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (n_features,)."""

    @abstractmethod
    def feature_names(self) -> list[str]:
        """Name every feature: channel, strip and bin."""

    def feature_parts(self) -> FeatureParts:
        """Read rows and channel off names of features, such as ``"hsv:scale0:rows5-15:h0s0v0"``."""
        pattern = re.compile(r"(\w+):.*?rows(\d+)-(\d+):")
        found = [match.groups() for match in map(pattern.match, self.feature_names()) if match]
        channel, top, bottom = np.array(found).T
        channels = tuple(dict.fromkeys(channel.tolist()))
        index = np.array([channels.index(name) for name in channel.tolist()])
        return FeatureParts(self.size[0], channels, top.astype(int), bottom.astype(int), index)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its parameters by name."""
        return dict(vars(self))

    @property
    def n_features(self) -> int:
        """Length of a vector."""
        return sum(self.blocks)

    @property
    def fingerprint(self) -> str:
        """Digest of all that decides the numbers: name, parameters, versions of the code."""
        parameters = json.dumps(self.get_params(), sort_keys=True)
        versions = f"{self.version}.{images.VERSION}"
        return digest_of("resight.descriptor", self.name, parameters, versions)

    def describe_batch(self, batch: Sequence[Image]) -> Floats:
        """Describe images as they are, (n, n_features); for those that are quicker together."""
        return np.array([self.describe_once(image) for image in batch])

    def describe(self, image: Image) -> Floats:
        """Describe one image, or the mean over it and its mirror image, float64."""
        return self.describe_many([image])[0]

    def describe_many(self, images: Sequence[Image]) -> Floats:
        """Describe images, each or the mean over it and its mirror image, (n, n_features)."""
        vectors = self.describe_batch(images)
        if self.mirror:
            mirrored = [np.ascontiguousarray(image[:, ::-1]) for image in images]
            vectors = (vectors + self.describe_batch(mirrored)) / 2.0
        return vectors


class LOMO(PlainDescriptor):
    """Local maximal occurrence of colours and textures in strips."""

    version = LOMO_VERSION
    size = (128, 48)
    blocks = (26960,)
    feature_names = staticmethod(lomo_names)

    def __init__(self, *, retinex: bool = True, mirror: bool = False) -> None:
        self.retinex = retinex
        self.mirror = mirror

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return "lomo" if self.retinex else "lomo-dagger"

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (26960,)."""
        return lomo(image, retinex=self.retinex)


class GOG(PlainDescriptor):
    """Gaussians of Gaussians in four colour spaces."""

    name = "gog"
    version = GOG_VERSION
    size = (128, 48)
    blocks = GOG_BLOCKS
    feature_names = staticmethod(gog_names)

    def __init__(self, *, mirror: bool = False) -> None:
        self.mirror = mirror

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image)


class NormalizedGOG(GOG):
    """GOG whose patches and strips all count the same: 27,622 features; ``norm=True`` of `gog`."""

    name = "gog-norm"

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (27622,)."""
        return gog(image, norm=True)


class WHOS(PlainDescriptor):
    """Weighted histograms of overlapping stripes, with HOG."""

    version = WHOS_VERSION
    size = (128, 64)

    def __init__(self, *, variant: str = "dagger", mirror: bool = False) -> None:
        self.variant = variant
        self.mirror = mirror

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return f"whos-{self.variant}"

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks that are centred and scaled separately before learning."""
        return (5138,) if self.variant == "dagger" else (2960,)

    def describe_once(self, image: Image) -> Floats:
        """Describe one image as it is, (5138,) or (2960,)."""
        return whos(image, variant=self.variant)

    def feature_names(self) -> list[str]:
        """Name every feature: channel, rows (and columns), bin."""
        return whos_names(self.variant)


class Relit(PlainDescriptor):
    """A descriptor of images whose light was evened out first."""

    def __init__(self, *, of: str, light: str, mirror: bool = False) -> None:
        self.of = of
        self.light = light
        self.mirror = mirror

    @property
    def _plain(self) -> PlainDescriptor:
        return plain(self.of)

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        return f"{self.of}-{self.light}"

    @property
    def version(self) -> int:
        """Number of the algorithm; that of the light is the version of all images."""
        return self._plain.version

    @property
    def blocks(self) -> tuple[int, ...]:
        """Widths of the blocks that are centred and scaled separately before learning."""
        return self._plain.blocks

    @property
    def size(self) -> tuple[int, int]:  # type: ignore[override]
        """Height and width to which images are brought."""
        return self._plain.size

    def describe_once(self, image: Image) -> Floats:
        """Describe one image under even light."""
        even = grey_world if self.light == "grey" else retinex
        return self._plain.describe_once(even(resize(as_rgb(image), *self.size)))

    def feature_names(self) -> list[str]:
        """Name every feature as the descriptor does."""
        return self._plain.feature_names()
