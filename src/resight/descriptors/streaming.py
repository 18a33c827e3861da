"""Many images at once in this process: in threads, in order, in bounded memory."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._progress import progress
from resight.descriptors.describing import (
    Describes,
    Extraction,
    Failure,
    Features,
    batch_of,
    describe_images,
    one_thread,
)
from resight.errors import InputError, unknown_name

BATCH = 4  # images per task: enough to hide the cost of handing a task over
IN_MEMORY = 256 * 2**20  # bytes of features above which they go to a temporary file
ON_ERROR = ("collect", "raise")


def stream(
    descriptor: Describes,
    sources: Sequence[Any] | NDArray[np.uint8],
    on_error: str = "raise",
    n_jobs: int | None = None,
) -> Iterator[Extraction]:
    """Describe images in threads and yield the results in order.

    Only a few batches are in flight at any time, so memory does not grow with the number of
    images; the kernels release the GIL, so threads use all cores.
    """
    if on_error not in ON_ERROR:
        raise unknown_name("way to handle errors", str(on_error), ON_ERROR)
    jobs, given = _count_jobs(n_jobs), _as_sequence(sources)
    raises = (Exception,) if on_error == "raise" else ()

    size = max(BATCH, batch_of(descriptor))

    def work(start: int) -> Extraction:
        return describe_images(descriptor, given[start : start + size], start, raises=raises)

    return _in_order(work, iter(range(0, len(given), size)), jobs)


def extract(
    descriptor: Describes,
    sources: Sequence[Any] | NDArray[np.uint8],
    on_error: str = "raise",
    n_jobs: int | None = None,
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


def _in_order(
    work: Callable[[int], Extraction], starts: Iterator[int], jobs: int
) -> Iterator[Extraction]:
    with one_thread(), ThreadPoolExecutor(jobs) as pool:
        waiting: deque[Future[Extraction]] = deque(
            pool.submit(work, start) for start in islice(starts, 2 * jobs)
        )
        try:
            while waiting:
                chunk = waiting.popleft().result()
                waiting.extend(pool.submit(work, start) for start in islice(starts, 1))
                yield chunk
        finally:
            for future in waiting:
                future.cancel()


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
