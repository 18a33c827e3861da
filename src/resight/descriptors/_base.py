"""What a descriptor is: the contract that every one fulfils; and those that are made of others."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.descriptors.describing import Extraction, Sources, batch_of, describe_many, extract
from resight.errors import InputError
from resight.images.arrays import resize
from resight.images.colour import Floats, Image
from resight.images.light import grey_world, retinex

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from typing_extensions import Self

LIGHTS = {"grey": grey_world, "retinex": retinex}


@dataclass(frozen=True)
class FeatureParts:
    """For every feature of a descriptor, the rows of the image and the channel it comes from."""

    height: int  # of the image after resizing
    channels: tuple[str, ...]
    top: NDArray[np.intp]  # (n_features,), the first row that a feature looks at
    bottom: NDArray[np.intp]  # (n_features,), the row after the last
    channel: NDArray[np.intp]  # (n_features,), index into `channels`


class Describes(Protocol):
    """What describing needs of a descriptor; equal fingerprints mean equal vectors.

    One that is quicker with several images at once also has `batch`, their number, and
    `describe_many(images)`, which returns an array (n, n_features).
    """

    @property
    def name(self) -> str: ...
    @property
    def n_features(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def describe(self, image: Image) -> Floats: ...


@dataclass(frozen=True)
class Joined:
    """Several descriptors side by side as one, so that each image is read once for all of them."""

    parts: tuple[Describes, ...]

    @property
    def name(self) -> str:
        return "+".join(part.name for part in self.parts)

    @property
    def n_features(self) -> int:
        return sum(part.n_features for part in self.parts)

    @property
    def fingerprint(self) -> str:
        return digest_of(*(part.fingerprint for part in self.parts))

    @property
    def networks(self) -> tuple[Any, ...]:
        return tuple(network for part in self.parts for network in getattr(part, "networks", ()))

    @property
    def batch(self) -> int:
        return max((batch_of(part) for part in self.parts), default=1)

    def describe(self, image: Image) -> Floats:
        return self.describe_many([image])[0]

    def describe_many(self, images: Sequence[Image]) -> Floats:
        return np.concatenate([describe_many(part, images) for part in self.parts], axis=1)


class Descriptor(ABC):
    """Turn images into vectors, without learning anything.

    Samples are images: uint8 RGB arrays, paths or binary streams, also mixed. Every descriptor is a
    transformer for scikit-learn, by its methods and not by a base class: importing scikit-learn
    takes longer than a search.

    Attributes
    ----------
    name : str, on the command line and in files
    version : int, raised whenever the algorithm gives other numbers
    size : height and width to which it brings images
    blocks : widths of the blocks that are centred and scaled separately before learning
    batch : how many images are described at once; see `describe_batch`
    """

    name: str
    version: int
    size: tuple[int, int]
    blocks: tuple[int, ...]
    batch: int = 1
    mirror: bool
    allowed: ClassVar[dict[str, tuple[object, ...]]] = {}  # values of parameters besides `mirror`

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

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; there is nothing to learn."""
        for name, values in {"mirror": (False, True), **self.allowed}.items():
            if getattr(self, name) not in values:
                given, words = getattr(self, name), " or ".join(map(repr, values))
                raise InputError(f"{name} of {type(self).__name__} must be {words}, not {given!r}")
        return self

    def transform(self, X: Sources) -> NDArray[np.float32]:
        """Describe images or paths, (n_images, n_features) float32; the first bad one raises."""
        return self.extract(X).features

    def fit_transform(self, X: Sources, y: Any = None) -> NDArray[np.float32]:
        """Do the same: there is nothing to learn."""
        return self.transform(X)

    def extract(
        self, sources: Sources, on_error: str = "raise", n_jobs: int | None = None
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
        return extract(self.fit(), sources, on_error, n_jobs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the columns that `transform` gives: channel, strip and bin."""
        return np.array(self.feature_names(), dtype=object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its parameters by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        type(self).__init__(self, **{**self.get_params(), **params})
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given})"

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        samples = InputTags(two_d_array=False, three_d_array=True)
        kind = TransformerTags(preserves_dtype=[])
        return Tags(None, TargetTags(False), kind, requires_fit=False, input_tags=samples)


class Relit(Descriptor):
    """The descriptor `of` (a name) of images whose light was evened out at its size first."""

    allowed: ClassVar = {"light": tuple(LIGHTS)}

    def __init__(self, *, of: str, light: str, mirror: bool = False) -> None:
        from resight.descriptors import descriptor

        self.of, self.light, self.mirror = of, light, mirror
        self.name = f"{of}-{light}"
        self._inner = descriptor(of)
        self.size, self.blocks = self._inner.size, self._inner.blocks

    @property
    def version(self) -> int:  # type: ignore[override]  # a property, so that it is never stale
        """That of the descriptor; that of the light is the version of all images."""
        return self._inner.version

    def describe_once(self, image: Image) -> Floats:
        """Describe one image under even light."""
        return self._inner.describe_once(LIGHTS[self.light](resize(image, *self.size)))

    def feature_names(self) -> list[str]:
        """Name every feature as the descriptor does."""
        return self._inner.feature_names()
