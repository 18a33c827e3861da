"""What a descriptor is: the contract that every descriptor of this package fulfils."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from resight import images
from resight._files import digest_of
from resight.descriptors.describing import Extraction
from resight.descriptors.streaming import extract, stream
from resight.images.colour import Floats, Image


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


class Descriptor(TransformerMixin, BaseEstimator, ABC):
    """Turn images into vectors, without learning anything.

    A descriptor implements `describe_once` and says its `name`, `blocks` and `version`, and the
    `size`, height and width, to which it brings images.
    Every `Descriptor` is a scikit-learn transformer whose samples are images: uint8 RGB arrays,
    paths or binary streams, also mixed.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"mirror": ["boolean"]}
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

    def fit(self, X: Any = None, y: Any = None) -> Descriptor:
        """Check the parameters; there is nothing to learn."""
        self._validate_params()
        return self

    def transform(self, X: Sequence[Any] | NDArray[np.uint8]) -> NDArray[np.float32]:
        """Describe images or paths, (n_images, n_features) float32; the first bad one raises."""
        return self.extract(X, on_error="raise").features

    def extract(
        self,
        sources: Sequence[Any] | NDArray[np.uint8],
        on_error: str = "raise",
        n_jobs: int | None = None,
    ) -> Extraction:
        """Describe many images or paths on all cores.

        Parameters
        ----------
        sources : sequence of paths, arrays or binary streams
        on_error : {"raise", "collect"}
            "collect" goes on after a bad image and reports it in `failures`.
        n_jobs : int, optional
            Threads; all cores if not given. The result does not depend on it.

        Returns
        -------
        Extraction
            `features` float32, `failures`, and `kept`: which image each row belongs to.
        """
        self._validate_params()
        return extract(self, sources, on_error, n_jobs)

    def stream(
        self, sources: Sequence[Any], on_error: str = "raise", n_jobs: int | None = None
    ) -> Iterator[Extraction]:
        """Describe images one chunk after the other, in order, in memory that does not grow.

        For features that are written somewhere as they come; parameters as in `extract`.
        """
        self._validate_params()
        return stream(self, sources, on_error, n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that `transform` gives: channel, strip and bin."""
        return np.array(self.feature_names(), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
