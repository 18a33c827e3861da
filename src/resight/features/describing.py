"""Describing sightings by workers: what a task is told, what it does, and how tasks are run.

The feature store and galleries share it. A worker reads the files itself or is sent their contents;
it writes its rows to the store or sends them back.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from resight import images
from resight._files import digest_of, digest_of_file
from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.descriptors._base import Describes
from resight.descriptors.describing import Extraction, Failure, describe_images, one_thread
from resight.errors import InputError
from resight.features._tables import write_chunk
from resight.images.colour import Image
from resight.networks.files import can_be_found, packed
from resight.workers.executors import Executor, InProcess, Item, LocalProcesses, Outcome, run

CHUNK = 64  # images a task: starting it and flushing its file cost little beside describing them
_READERS = 8  # threads that read files for their digests: they wait for the disk, not for a core
_MAY_PASS = (MemoryError, OSError)  # not the image's fault: its chunk is tried again

Box = tuple[int, int, int, int]


class Crop(NamedTuple):
    """One image to describe: a file, or a box of it, known by its contents."""

    key: str
    path: str
    digest: str
    box: Box | None


class Task(NamedTuple):
    """Some crops to describe.

    `contents` are the bytes of their files, None where the worker reads them itself; `target` is
    the chunk file to write, None where the rows are sent back.
    """

    crops: Sequence[Crop]
    contents: Mapping[str, bytes] | None
    target: Path | None


def identify(sightings: Sightings) -> tuple[list[Crop | None], list[Failure]]:
    """Read every file once and name each row by what is in it: contents, not name or date."""
    files = [str(path.absolute()) for path in sightings.files()]
    unique = list(dict.fromkeys(files))
    with ThreadPoolExecutor(_READERS) as readers:
        batches = [unique[start : start + CHUNK] for start in range(0, len(unique), CHUNK)]
        digests = dict(chain.from_iterable(readers.map(_digests, batches)))
    crops: list[Crop | None] = []
    failures = []
    for row, path in enumerate(files):
        digest = digests[path]
        if isinstance(digest, OSError):
            failures.append(Failure(row, str(sightings.paths[row]), digest.strerror or str(digest)))
            crops.append(None)
        else:
            box = box_of(sightings, row)
            crops.append(Crop(crop_key(digest, box), path, digest, box))
    return crops, failures


def box_of(sightings: Sightings, row: int) -> Box | None:
    """Box of a sighting, None where its file is a crop already."""
    return None if sightings.boxes is None else tuple(sightings.boxes[row].tolist())


def crop_key(digest: str, box: Box | None) -> str:
    """Key of a vector in a feature store, from the digest of the file and the box in it."""
    return digest_of(digest, repr(box))


def describe_by(
    executor: Executor,
    descriptor: Describes,
    items: Sequence[Item],
    prepare: Callable[[Item], Task | None],
) -> Iterator[Outcome[Item, Extraction]]:
    """Let workers describe what `prepare` makes of each item, and yield outcomes as they come.

    Rows of what was described are places among the crops of a task. Where `prepare` returns None
    there is nothing to describe, and the outcome has no value.
    """
    if len(items) == 1 and isinstance(executor, LocalProcesses):
        executor = InProcess()  # starting processes would take longer than the work
    fingerprint = descriptor.fingerprint
    for network in getattr(descriptor, "networks", ()):
        file, digest = network.path, network.digest_
        executor.bring(partial(can_be_found, file, digest), partial(packed, file, digest))

    def arguments(item: Item) -> tuple[object, ...] | None:
        task = prepare(item)
        return None if task is None else (task, descriptor, fingerprint, __version__)

    return run(executor, describe_crops, items, arguments)


def describe_crops(task: Task, descriptor: Describes, fingerprint: str, version: str) -> Extraction:
    """Describe the crops of a task, in a worker; refuse other code than where it was ordered.

    An image that cannot be described is reported and the others go on. Errors of the disk, the
    network or memory raise, since they may pass, so that the chunk is tried again.
    """
    from resight.workers.dask_cluster import refuse_other_code

    refuse_other_code(version, descriptor.fingerprint, fingerprint)
    if task.target is not None and task.target.exists():
        return Extraction(np.empty((0, 0), np.float32), [], np.empty(0, np.intp))

    def read(crop: Crop) -> Image:
        try:
            content = _content(crop.path) if task.contents is None else task.contents[crop.path]
        except KeyError:
            raise InputError("the file disappeared before it could be sent") from None
        if digest_of(content) != crop.digest:
            raise InputError("the file changed while it was being described; run again")
        image = images.read(content)
        return image if crop.box is None else images.cut(image, crop.box)

    with one_thread():
        done = describe_images(descriptor, task.crops, read=read, raises=_MAY_PASS)
    if task.target is None:
        return done
    if len(done.kept):
        write_chunk(task.target, [task.crops[row].key for row in done.kept], done.features)
    return replace(done, features=done.features[:0])


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.readall()
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"cannot be read by worker {platform.node()}: {error.strerror}") from error


def _digests(paths: Sequence[str]) -> list[tuple[str, str | OSError]]:
    """Digest of each file; many in one task, since handing it to a thread costs more than one."""
    found: list[tuple[str, str | OSError]] = []
    for path in paths:
        try:
            found.append((path, digest_of_file(path, images.MAX_BYTES)))
        except OSError as error:
            found.append((path, error))
    return found
