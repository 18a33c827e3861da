"""One chunk of images: what a worker computes, and the file it leaves in the store."""

from __future__ import annotations

import errno
import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from resight import images
from resight._files import atomic_write, digest_of
from resight.errors import InputError, StoreError

Rows = NDArray[np.float32]
FAILED = ""  # key of a row that could not be computed; it holds NaN
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Describes(Protocol):
    """What the store needs of a descriptor."""

    @property
    def name(self) -> str:
        """Its name in commands and results."""

    @property
    def n_features(self) -> int:
        """Length of the vectors."""

    @property
    def fingerprint(self) -> str:
        """Code version and parameters: equal fingerprints give equal vectors."""

    def describe(self, image: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Turn one RGB image (height, width, 3) into a vector (n_features,)."""


class Crop(NamedTuple):
    """One row to compute: a file, or a box of it, known by its contents."""

    key: str
    path: str
    digest: str
    box: tuple[int, int, int, int] | None


@dataclass(frozen=True)
class Report:
    """What a worker tells about a chunk: rows it could not compute, and rows if asked to send."""

    failures: dict[str, str]
    keys: tuple[str, ...] = ()
    rows: Rows | None = None


def compute(
    target: Path | None,
    crops: Sequence[Crop],
    descriptor: Describes,
    fingerprint: str,
    version: str,
    contents: Mapping[str, bytes] | None,
) -> Report:
    """Describe some images and write them to `target` (runs in a worker).

    Parameters
    ----------
    target : Path or None
        Chunk file to write; None sends the rows back instead.
    fingerprint, version : str
        Of the descriptor and resight where the work was ordered; others are refused.
    contents : mapping of path to bytes, or None to read the files here

    Notes
    -----
    An image that cannot be described is reported and the others go on. Errors of the disk, the
    network or memory raise, since they may pass, so that the chunk is tried again.
    """
    from resight.workers.dask_cluster import refuse_other_code

    refuse_other_code(version, descriptor.fingerprint, fingerprint)
    if target is not None and target.exists():
        return Report({})
    keys, rows, failures = _describe_all(crops, descriptor, contents)
    if target is None:
        return Report(failures, tuple(keys), rows)
    if keys:
        write_chunk(target, keys, rows)
    return Report(failures)


def write_chunk(target: Path, keys: Sequence[str], rows: Rows) -> None:
    """Write a chunk file: the keys, then the rows, each as one npy array."""
    with refusing_full_disk(target), atomic_write(target) as stream:
        lock(stream)
        for array in (np.array(keys, "S32"), rows):
            npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(array))
            stream.write(array.view(np.uint8).data)  # np.save hides why a full disk takes no more


def chunk_keys(path: Path) -> list[str]:
    """Keys of a chunk file, without reading its rows."""
    with path.open("rb") as stream:
        keys: NDArray[np.bytes_] = _load(stream, path)
    return [key.decode() for key in keys.tolist()]


def chunk_rows(path: Path) -> Rows:
    """Rows of a chunk file, (n, n_features), memory-mapped."""
    with path.open("rb") as stream:
        _load(stream, path)
        try:
            npy.read_magic(stream)
            shape, _, dtype = npy.read_array_header_1_0(stream)
            return np.memmap(stream, dtype, "r", stream.tell(), shape)
        except ValueError as error:
            raise _damaged(path, error) from error


class refusing_full_disk:  # noqa: N801
    """Context that turns 'no space left' into an error that says what is safe and what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise StoreError(
                f"no space left to write {self._path.name} in {self._path.parent} "
                f"({error.strerror}). Everything finished is kept: free some space and run the "
                "same command again"
            ) from error


def lock(stream: IO[Any]) -> None:
    """Mark a file that is being written, so that nobody takes it for left over by a killed run."""
    try:
        import fcntl
    except ImportError:  # Windows refuses to delete open files, which is protection enough
        return
    fcntl.flock(stream, fcntl.LOCK_EX)


def remove_if_abandoned(path: Path) -> None:
    """Remove a temporary file unless a living process is writing it."""
    try:
        with path.open("rb") as stream:
            try:
                import fcntl

                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:
                pass
        path.unlink()
    except OSError:  # in use, or gone already
        return


def _load(stream: IO[bytes], path: Path) -> Any:
    try:
        return np.load(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> StoreError:
    return StoreError(f"{path} is damaged ({error}). Delete it: what it held is computed again")


def _describe_all(
    crops: Sequence[Crop], descriptor: Describes, contents: Mapping[str, bytes] | None
) -> tuple[list[str], Rows, dict[str, str]]:
    from threadpoolctl import threadpool_limits

    keys, rows, failures = [], [], {}
    with threadpool_limits(1):  # one thread a worker: more of them only fight for the cores
        for crop in crops:
            try:
                rows.append(_describe(crop, _bytes(crop.path, contents), descriptor))
                keys.append(crop.key)
            except (MemoryError, OSError):  # may pass: the chunk is tried again
                raise
            except Exception as error:
                failures[crop.key] = str(error) or type(error).__name__
    return keys, np.array(rows, np.float32).reshape(-1, descriptor.n_features), failures


def _bytes(path: str, contents: Mapping[str, bytes] | None) -> bytes:
    if contents is not None:
        if path not in contents:
            raise InputError("the file disappeared before it could be sent")
        return contents[path]
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"cannot be read by worker {platform.node()}: {error.strerror}") from error


def _describe(crop: Crop, data: bytes, descriptor: Describes) -> Rows:
    if digest_of(data) != crop.digest:
        raise InputError("the file changed while it was being described; run again")
    vector = np.asarray(descriptor.describe(_cut(_decode(data), crop.box)), np.float32)
    if vector.shape != (descriptor.n_features,):
        raise InputError(
            f"{descriptor.name} gave shape {vector.shape} instead of ({descriptor.n_features},)"
        )
    if not np.isfinite(vector).all():
        raise InputError(f"{descriptor.name} gave values that are not finite")
    return vector


def _cut(image: NDArray[np.uint8], box: tuple[int, int, int, int] | None) -> NDArray[np.uint8]:
    if box is None:
        return image
    x, y, width, height = box
    crop = image[max(y, 0) : max(y + height, 0), max(x, 0) : max(x + width, 0)]
    if 0 in crop.shape:
        raise InputError(
            f"box x={x} y={y} w={width} h={height} lies outside the image of "
            f"{image.shape[1]} x {image.shape[0]} pixels"
        )
    return np.ascontiguousarray(crop)


def _decode(data: bytes) -> NDArray[np.uint8]:
    if not data:
        raise InputError("the file is empty (0 bytes); copy or export it again")
    return images.read(io.BytesIO(data))
