"""Describing images: the one path from sources to vectors, whoever asks and wherever it runs.

`describe_images` reads, describes and says what failed, one image after the other, or as many
together as the descriptor likes. Threads of one process call it for their share
(`resight.descriptors.streaming`), and so do other processes and workers of a cluster
(`resight.features.describing`).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.errors import InputError, ResightError
from resight.images.colour import Image

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Features = NDArray[np.float32]
Read = Callable[[Any], Image]
Errors = tuple[type[Exception], ...]
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's malloc.h
_KEPT = 256 * 2**20  # bytes of freed memory that may stay with the process
_FROM_HEAP = 32 * 2**20  # arrays below come from memory that is kept; glibc allows no more


class Describes(Protocol):
    """What describing needs of a descriptor.

    One that is quicker with several images at once also has `batch`, their number, and
    `describe_many(images)`, which returns an array (n, n_features).
    """

    @property
    def name(self) -> str:
        """Its name in commands and results."""

    @property
    def n_features(self) -> int:
        """Length of the vectors."""

    @property
    def fingerprint(self) -> str:
        """Code version and parameters: equal fingerprints give equal vectors."""

    def describe(self, image: Image) -> NDArray[np.float64]:
        """Turn one RGB image (height, width, 3) into a vector (n_features,)."""


@dataclass(frozen=True)
class Joined:
    """Several descriptors side by side as one, so that each image is read once for all of them."""

    parts: tuple[Describes, ...]

    @property
    def name(self) -> str:
        """Their names, joined by ``+``."""
        return "+".join(part.name for part in self.parts)

    @property
    def n_features(self) -> int:
        """Length of all vectors together."""
        return sum(part.n_features for part in self.parts)

    @property
    def fingerprint(self) -> str:
        """Of all of them, in this order."""
        return digest_of(*(part.fingerprint for part in self.parts))

    @property
    def networks(self) -> tuple[Any, ...]:
        """Those of them that are a user's networks."""
        return tuple(network for part in self.parts for network in getattr(part, "networks", ()))

    @property
    def batch(self) -> int:
        """Images at once: as many as any of them likes."""
        return max((batch_of(part) for part in self.parts), default=1)

    def describe(self, image: Image) -> NDArray[np.float64]:
        """Describe one image by each of them."""
        return np.concatenate([part.describe(image) for part in self.parts])

    def describe_many(self, images: Sequence[Image]) -> NDArray[np.float64]:
        """Describe images by each of them, (n, n_features)."""
        return np.concatenate([describe_many(part, images) for part in self.parts], axis=1)


def batch_of(descriptor: Describes) -> int:
    """Return how many images a descriptor likes to describe at once."""
    return int(getattr(descriptor, "batch", 1))


def describe_many(descriptor: Describes, images: Sequence[Image]) -> NDArray[np.float64]:
    """Describe images, together if the descriptor can, (n, n_features)."""
    together = getattr(descriptor, "describe_many", None)
    if together is None:
        vectors = [np.asarray(descriptor.describe(image)) for image in images]
        return vectors[0][None] if len(vectors) == 1 else np.array(vectors)
    return np.asarray(together(images))


class Failure(NamedTuple):
    """An image without a vector: its row in what was given, its file, and why."""

    row: int
    path: str
    reason: str


@dataclass(frozen=True)
class Extraction:
    """What became of some images.

    Attributes
    ----------
    features : float32 array of shape (n_kept, n_features)
        One row per described image, in the order given; memory-mapped from a temporary file where
        they would take much memory.
    failures : list of Failure
    kept : int array of shape (n_kept,)
        Which of the images given the rows belong to; all of them if nothing failed.
    """

    features: Features
    failures: list[Failure]
    kept: NDArray[np.intp]


def describe_images(
    descriptor: Describes,
    sources: Sequence[Any],
    first: int = 0,
    read: Read = images.read,
    raises: Errors = (),
) -> Extraction:
    """Read and describe images in order; what fails is reported, the rest goes on.

    Rows of `kept` and `failures` count from `first`; errors of the types `raises` are raised
    instead of reported.
    """
    keep_freed_memory()
    kept: list[int] = []
    features = np.empty((len(sources), descriptor.n_features), np.float32)
    failures: list[Failure] = []

    def note(place: int, error: Exception) -> None:
        source, name = sources[place], _name(sources[place], first + place)
        if isinstance(error, raises):
            if isinstance(error, ResightError) and isinstance(source, np.ndarray):
                raise InputError(f"{name}: {error}") from error
            raise error  # errors of files name the file already
        reason = (
            str(error) if isinstance(error, ResightError) else f"{type(error).__name__}: {error}"
        )
        failures.append(Failure(first + place, name, reason))

    def describe(places: list[int], pictures: list[Image]) -> None:
        try:
            vectors = _vectors(descriptor, pictures)
        except Exception as error:
            if len(places) == 1:
                note(places[0], error)
                return
            for place, picture in zip(places, pictures, strict=True):  # which of them is it?
                describe([place], [picture])
            return
        features[len(kept) : len(kept) + len(places)] = vectors
        kept.extend(first + place for place in places)

    size = batch_of(descriptor)
    for start in range(0, len(sources), size):
        pictures: dict[int, Image] = {}
        for place in range(start, min(start + size, len(sources))):
            try:
                pictures[place] = read(sources[place])
            except Exception as error:
                note(place, error)
        if pictures:
            describe(list(pictures), list(pictures.values()))
    return Extraction(features[: len(kept)], sorted(failures), np.array(kept, np.intp))


def _vectors(descriptor: Describes, images: Sequence[Image]) -> Features:
    vectors = np.asarray(describe_many(descriptor, images), np.float32)
    if vectors.shape != (len(images), descriptor.n_features):
        raise InputError(
            f"{descriptor.name} gave shape {vectors.shape[1:]} instead of "
            f"({descriptor.n_features},)"
        )
    if not np.isfinite(vectors).all():
        raise InputError(f"{descriptor.name} gave values that are not finite")
    return vectors


@cache
def keep_freed_memory() -> None:
    """Let glibc keep what one image's arrays took for those of the next.

    GOG takes some megabytes of temporary arrays for each image. By default glibc returns them to
    the system after each use, and getting them back takes hundreds of page faults an image: a
    fifth of the time, and most of what keeps two cores from being twice as fast as one. Other C
    libraries are left as they are.
    """
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not glibc
        return
    mallopt(_MMAP_THRESHOLD, _FROM_HEAP)
    mallopt(_TRIM_THRESHOLD, _KEPT)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS, OpenMP and OpenCV from starting threads: who describes is one of many already."""
    opencv = sys.modules.get("cv2")  # not imported for this: our descriptors do without it
    before = opencv.getNumThreads() if opencv else 1
    try:
        if opencv:
            opencv.setNumThreads(1)
        with _thread_pools(len(sys.modules)).limit(limits=1):
            yield
    finally:
        if opencv:
            opencv.setNumThreads(before)


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the libraries that may start threads; again once more modules brought more of them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _name(source: Any, row: int) -> str:
    if isinstance(source, (np.ndarray, bytes)):
        return f"image {row}"
    return str(getattr(source, "path", source))
