"""Describing many images at once: in parallel, in order, in bounded memory."""

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.descriptors._memory import keep_freed_memory
from resight.errors import InputError, ResightError, unknown_name

BATCH = 4  # images per task: enough to hide the cost of handing a task over
IN_MEMORY = 256 * 2**20  # bytes of features above which they go to a temporary file
ON_ERROR = ("collect", "raise")

Describe = Callable[[Any], NDArray[np.float64]]
Features = NDArray[np.float32]


@dataclass(frozen=True)
class Failure:
    """An image that could not be described: its place in the input, its name and why."""

    index: int
    source: str
    reason: str


@dataclass(frozen=True)
class Chunk:
    """Consecutive images: features of those that could be described, failures of the others."""

    kept: NDArray[np.intp]  # (k,): their places in the input
    features: Features  # (k, n_features)
    failures: list[Failure]


@dataclass(frozen=True)
class Extraction:
    """What became of many images.

    Attributes
    ----------
    features : float32 array of shape (n_kept, n_features)
        One row per described image, in the order given; memory-mapped from a temporary file
        if they would take much memory.
    failures : list of Failure
    kept : int array of shape (n_kept,)
        Which of the images given the rows belong to; all of them if nothing failed.
    """

    features: Features
    failures: list[Failure]
    kept: NDArray[np.intp]


def stream(
    describe: Describe,
    sources: Sequence[Any],
    n_features: int,
    on_error: str,
    n_jobs: int | None,
) -> Iterator[Chunk]:
    """Describe images in threads and yield the results in order.

    Only a few batches are in flight at any time, so memory does not grow with the number of
    images; the kernels release the GIL, so threads use all cores.
    """
    if on_error not in ON_ERROR:
        raise unknown_name("way to handle errors", str(on_error), ON_ERROR)
    jobs = _count_jobs(n_jobs)
    keep_freed_memory()
    starts = iter(range(0, len(sources), BATCH))

    def work(start: int) -> Chunk:
        batch = sources[start : start + BATCH]
        return _describe_batch(describe, batch, start, n_features, on_error)

    return _in_order(work, starts, jobs)


def _in_order(work: Callable[[int], Chunk], starts: Iterator[int], jobs: int) -> Iterator[Chunk]:
    from threadpoolctl import threadpool_limits

    # Each thread describes its own images; BLAS threads on top would only get in the way.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(jobs) as pool:
        waiting: deque[Future[Chunk]] = deque(
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


def _describe_batch(
    describe: Describe, sources: Sequence[Any], start: int, n_features: int, on_error: str
) -> Chunk:
    kept: list[int] = []
    features = np.empty((len(sources), n_features), np.float32)
    failures: list[Failure] = []
    for index, source in enumerate(sources, start):
        try:
            features[len(kept)] = describe(source)
            kept.append(index)
        except Exception as error:
            if on_error == "raise":
                raise _with_place(error, index, source) from error
            failures.append(Failure(index, _name(source, index), _reason(error)))
    return Chunk(np.array(kept, np.intp), features[: len(kept)], failures)


def gather(chunks: Iterator[Chunk], n_images: int, n_features: int) -> Extraction:
    """Collect chunks into one array: in memory, or in a temporary file if it would be large."""
    kept: list[NDArray[np.intp]] = [np.empty(0, np.intp)]
    failures: list[Failure] = []

    def rows() -> Iterator[Features]:
        for chunk in chunks:
            kept.append(chunk.kept)
            failures.extend(chunk.failures)
            yield chunk.features

    small = 4 * n_images * n_features <= IN_MEMORY
    collect = _rows_in_memory if small else _rows_in_file
    features = collect(rows(), n_images, n_features)
    return Extraction(features, failures, np.concatenate(kept))


def _rows_in_memory(rows: Iterator[Features], n_images: int, n_features: int) -> Features:
    features = np.empty((n_images, n_features), np.float32)
    filled = 0
    for part in rows:
        features[filled : filled + len(part)] = part
        filled += len(part)
    return features[:filled]


def _rows_in_file(rows: Iterator[Features], n_images: int, n_features: int) -> Features:
    with tempfile.TemporaryFile(prefix="resight-features-") as file:
        filled = 0
        for part in rows:
            file.write(part.tobytes())
            filled += len(part)
        file.flush()
        if filled == 0:
            return np.empty((0, n_features), np.float32)
        return np.memmap(file, np.float32, "r+", shape=(filled, n_features))


def _count_jobs(n_jobs: int | None) -> int:
    if n_jobs is None or n_jobs == -1:
        able = getattr(os, "sched_getaffinity", None)
        return len(able(0)) if able else os.cpu_count() or 1
    if n_jobs < 1:
        raise InputError(f"n_jobs must be at least 1, or None for all cores, not {n_jobs}")
    return n_jobs


def _with_place(error: Exception, index: int, source: Any) -> Exception:
    """Say which image failed; errors of files name the file already."""
    if isinstance(error, ResightError) and isinstance(source, np.ndarray):
        return InputError(f"{_name(source, index)}: {error}")
    return error


def _name(source: Any, index: int) -> str:
    return f"image {index}" if isinstance(source, np.ndarray) else str(source)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ResightError) else f"{type(error).__name__}: {error}"
