"""Files of a feature store in the making: chunks of rows, and a table that grows of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from resight._files import atomic_write, keep_part, open_part
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


def read_chunk(path: Path) -> tuple[list[str], Rows]:
    """Keys and rows of a chunk file; the rows, (n, n_features), are memory-mapped."""
    with path.open("rb") as stream:
        try:
            keys: NDArray[np.bytes_] = np.load(stream, allow_pickle=False)
            npy.read_magic(stream)
            shape, _, dtype = npy.read_array_header_1_0(stream)
            rows: Rows = np.memmap(stream, dtype, "r", stream.tell(), shape)
        except (ValueError, EOFError) as error:
            raise damaged(path, error) from error
    return [key.decode() for key in keys.tolist()], rows


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


def damaged(path: Path, reason: object, files: str = "it") -> StoreError:
    """Make the error about a file that cannot be read, and which files to delete."""
    return StoreError(
        f"{path} is damaged ({reason}). Delete {files}: what it held is computed again"
    )


class GrowingTable:
    """Context for a file with a place for every row, which is removed unless it is kept.

    It is written while workers compute, so that little is left to do when the last one is ready.
    It will be in `folder`; of the `keys` of its rows, the same may come several times.
    """

    def __init__(self, folder: Path, keys: Sequence[str], n_features: int) -> None:
        self._folder = folder
        self._shape = (len(keys), n_features)
        self._missing: dict[str, list[int]] = {}
        for row, key in enumerate(keys):
            self._missing.setdefault(key, []).append(row)
        self._stream: IO[Any] | None = None
        self._start = 0

    def lacks(self, keys: Sequence[str]) -> bool:
        """Tell whether some of these rows are wanted and not here yet."""
        return not self._missing.keys().isdisjoint(keys)

    def put(self, keys: Sequence[str], rows: Rows) -> None:
        """Write rows to all their places; those not wanted, or here already, are passed over."""
        pairs = [
            (place, row)
            for row, key in enumerate(keys)
            if key != FAILED
            for place in self._missing.pop(key, ())
        ]
        if not pairs:
            return
        # Pairs of which both go up by one are written together.
        ends = np.flatnonzero((np.diff(pairs, axis=0) != 1).any(axis=1)) + 1
        with refusing_full_disk(self._folder / "a table"):  # named once it is known what failed
            for run in np.split(np.array(pairs), ends):
                self._write(run[0, 0], rows[run[0, 1] : run[-1, 1] + 1])
            self._file().flush()
            os.fsync(self._file().fileno())  # now, beside the workers, and not at the end

    def finish(self, keys: Sequence[str], path: Path) -> bool:
        """Keep the file as `path`, rows whose key is now FAILED as NaN; False while rows lack."""
        failed = [row for row, key in enumerate(keys) if key == FAILED]
        if not {row for rows in self._missing.values() for row in rows}.issubset(failed):
            return False
        nothing = np.full(self._shape[1], np.nan, np.float32)
        with refusing_full_disk(path):
            for row in failed:
                self._write(row, nothing)
            keep_part(self._file(), path)
        return True

    def _write(self, place: int, rows: Rows) -> None:
        stream = self._file()
        stream.seek(self._start + place * 4 * self._shape[1])
        stream.write(np.ascontiguousarray(rows, "<f4").data)

    def _file(self) -> IO[Any]:
        """Open it on first use: what is in one table already needs no other."""
        if self._stream is None:
            self._stream = open_part(self._folder / "table")
            lock(self._stream)
            header = {"descr": "<f4", "fortran_order": False, "shape": self._shape}
            npy.write_array_header_1_0(self._stream, header)  # type: ignore[arg-type]
            self._start = self._stream.tell()
        return self._stream

    def __enter__(self) -> GrowingTable:
        return self

    def __exit__(self, *error: object) -> None:
        if self._stream is not None:
            with suppress(OSError):  # closing tries again to write what a full disk did not take
                self._stream.close()
            Path(self._stream.name).unlink(missing_ok=True)
