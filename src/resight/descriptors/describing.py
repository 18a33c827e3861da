"""Describing images: the one path from sources to vectors, whoever asks and wherever it runs.

`describe_images` reads, describes and says what failed, one image after the other. Threads of one
process call it for their share (`resight.descriptors.streaming`), and so do other processes and
workers of a cluster (`resight.features.describing`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.descriptors._memory import keep_freed_memory
from resight.errors import InputError, ResightError
from resight.images.colour import Image

Features = NDArray[np.float32]
Read = Callable[[Any], Image]
Errors = tuple[type[Exception], ...]


class Describes(Protocol):
    """What describing needs of a descriptor."""

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

    def describe(self, image: Image) -> NDArray[np.float64]:
        """Describe one image by each of them."""
        return np.concatenate([part.describe(image) for part in self.parts])


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
    """Read and describe images one after the other; what fails is reported, the rest goes on.

    Parameters
    ----------
    first : int
        Row of the first source, for `kept` and `failures`.
    read : callable
        Source -> RGB image.
    raises : tuple of exception types
        Errors that are raised instead of reported.
    """
    keep_freed_memory()
    kept: list[int] = []
    features = np.empty((len(sources), descriptor.n_features), np.float32)
    failures: list[Failure] = []
    for row, source in enumerate(sources, first):
        try:
            features[len(kept)] = _vector(descriptor, read(source))
            kept.append(row)
        except raises as error:
            if isinstance(error, ResightError) and isinstance(source, np.ndarray):
                raise InputError(f"{_name(source, row)}: {error}") from error
            raise  # errors of files name the file already
        except Exception as error:
            failures.append(Failure(row, _name(source, row), _reason(error)))
    return Extraction(features[: len(kept)], failures, np.array(kept, np.intp))


def _vector(descriptor: Describes, image: Image) -> Features:
    vector = np.asarray(descriptor.describe(image), np.float32)
    if vector.shape != (descriptor.n_features,):
        raise InputError(
            f"{descriptor.name} gave shape {vector.shape} instead of ({descriptor.n_features},)"
        )
    if not np.isfinite(vector).all():
        raise InputError(f"{descriptor.name} gave values that are not finite")
    return vector


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS, OpenMP and OpenCV from starting threads: who describes is one of many already."""
    from threadpoolctl import threadpool_limits

    opencv = sys.modules.get("cv2")  # not imported for this: our descriptors do without it
    before = opencv.getNumThreads() if opencv else 1
    try:
        if opencv:
            opencv.setNumThreads(1)
        with threadpool_limits(1):
            yield
    finally:
        if opencv:
            opencv.setNumThreads(before)


def _name(source: Any, row: int) -> str:
    if isinstance(source, (np.ndarray, bytes)):
        return f"image {row}"
    return str(getattr(source, "path", source))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ResightError) else f"{type(error).__name__}: {error}"
