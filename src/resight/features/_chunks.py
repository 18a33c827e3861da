"""Files of a feature store: chunks of rows, full disks, and what killed processes left."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from resight._files import atomic_write
from resight.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows refuses to delete open files, which is protection enough
    fcntl = None  # type: ignore[assignment]

Rows = NDArray[np.float32]
FAILED = ""  # key of a row that could not be computed; it holds NaN
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
            raise damaged(path, error) from error


@contextmanager
def refusing_full_disk(path: Path) -> Iterator[None]:
    """Turn 'no space left' into an error that says what is safe and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        raise StoreError(
            f"no space left to write {path.name} in {path.parent} ({error.strerror}). Everything "
            "finished is kept: free some space and run the same command again"
        ) from error


def lock(stream: IO[Any]) -> None:
    """Mark a file that is being written, so that nobody takes it for left over by a killed run."""
    if fcntl is not None:
        fcntl.flock(stream, fcntl.LOCK_EX)


def remove_if_abandoned(path: Path) -> None:
    """Remove a temporary file unless a living process is writing it."""
    with suppress(OSError):  # in use, or gone already
        with path.open("rb") as stream:
            if fcntl is not None:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def _load(stream: IO[bytes], path: Path) -> Any:
    try:
        return np.load(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, reason: object, files: str = "it") -> StoreError:
    """Make the error about a file that cannot be read, and which files to delete."""
    return StoreError(
        f"{path} is damaged ({reason}). Delete {files}: what it held is computed again"
    )
