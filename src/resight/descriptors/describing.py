"""Describing images: the one path from sources to vectors, whoever asks and wherever it runs.

`describe_images` reads, describes and says what failed, one image after the other, or as many
together as the descriptor likes. Threads of one process call it for their share (`stream`,
`extract`), and so do other processes and workers of a cluster (`resight.features.describing`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._progress import progress
from resight.errors import InputError, ResightError, unknown_name
from resight.images.colour import Image

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

    from resight.descriptors._base import Describes

Features = NDArray[np.float32]
Sources = Sequence[Any] | NDArray[np.uint8]  # arrays, paths or binary streams, also mixed
Read = Callable[[Any], Image]
Errors = tuple[type[Exception], ...]
BATCH = 4  # images per task: enough to hide the cost of handing a task over
IN_MEMORY = 256 * 2**20  # bytes of features above which they go to a temporary file
ON_ERROR = ("collect", "raise")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's malloc.h
_KEPT = 256 * 2**20  # bytes of freed memory that may stay with the process
_FROM_HEAP = 32 * 2**20  # arrays below come from memory that is kept; glibc allows no more


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

    Features, (n_kept, n_features), are memory-mapped from a temporary file if they are large.
    """

    features: Features
    failures: list[Failure]
    kept: NDArray[np.intp]  # (n_kept,): which of the images given the rows belong to


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
        why = str(error) if isinstance(error, ResightError) else f"{type(error).__name__}: {error}"
        failures.append(Failure(first + place, name, why))

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


def stream(
    descriptor: Describes, sources: Sources, on_error: str = "raise", n_jobs: int | None = None
) -> Iterator[Extraction]:
    """Describe images in threads and yield the results in order.

    Only a few batches are in flight at any time, so memory does not grow with the number of
    images; the kernels release the GIL, so threads use all cores.
    """
    if on_error not in ON_ERROR:
        raise unknown_name("way to handle errors", str(on_error), ON_ERROR)
    given, raises = _as_sequence(sources), (Exception,) if on_error == "raise" else ()
    jobs, size = _count_jobs(n_jobs), max(BATCH, batch_of(descriptor))
    starts = iter(range(0, len(given), size))
    with one_thread(), ThreadPoolExecutor(jobs) as pool:

        def work(start: int) -> Future[Extraction]:
            part = given[start : start + size]
            return pool.submit(describe_images, descriptor, part, start, raises=raises)

        waiting = deque(map(work, islice(starts, 2 * jobs)))
        try:
            while waiting:
                chunk = waiting.popleft().result()
                waiting.extend(map(work, islice(starts, 1)))
                yield chunk
        finally:
            for future in waiting:
                future.cancel()


def extract(
    descriptor: Describes, sources: Sources, on_error: str = "raise", n_jobs: int | None = None
) -> Extraction:
    """Describe images in threads, into one array: in memory, or in a file if it is large."""
    given, width = _as_sequence(sources), descriptor.n_features
    kept: list[int] = []
    failures: list[Failure] = []
    if 4 * len(given) * width > IN_MEMORY:
        with tempfile.TemporaryFile(prefix="resight-features-") as file:
            features: Features = np.memmap(file, np.float32, "w+", shape=(len(given), width))
    else:
        features = np.empty((len(given), width), np.float32)
    with progress(f"describing with {descriptor.name}", len(given)) as advance:
        for chunk in stream(descriptor, given, on_error, n_jobs):
            features[len(kept) : len(kept) + len(chunk.kept)] = chunk.features
            kept.extend(chunk.kept.tolist())
            failures.extend(chunk.failures)
            advance(len(chunk.kept) + len(chunk.failures))
    return Extraction(features[: len(kept)], failures, np.array(kept, np.intp))


def _as_sequence(sources: Any) -> Sequence[Any]:
    if isinstance(sources, (str, bytes, os.PathLike)):
        raise InputError(f"give a list of images or paths, not one path: [{str(sources)!r}]")
    if isinstance(sources, np.ndarray) and sources.ndim == 3:
        raise InputError("give a list of images, not one image: [image]")
    if hasattr(sources, "__iter__"):
        return list(sources)
    raise InputError(f"give a list of images or paths, not {type(sources).__name__}")


def _count_jobs(n_jobs: int | None) -> int:
    if n_jobs is None or n_jobs == -1:
        able = getattr(os, "sched_getaffinity", None)
        return len(able(0)) if able else os.cpu_count() or 1
    if n_jobs < 1:
        raise InputError(f"n_jobs must be at least 1, or None for all cores, not {n_jobs}")
    return n_jobs
