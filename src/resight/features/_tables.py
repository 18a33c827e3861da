"""Files of one descriptor in a feature store: chunks in the making and finished tables.

    NAME-FINGERPRINT/
        chunks/KEYS.chunk       some rows, written whole by one worker; removed once in a table
        .table.*.part           a table in the making; a process that is killed leaves it behind
        ROWS.npy + ROWS.json    a finished table and its sidecar (written last: it says complete)

A row is known by a key made of the image's contents and box, so any table serves any selection of
the same images, under any file names. File names are digests of keys: two processes that do the
same work write the same bytes to the same names, whoever comes last.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from resight._files import atomic_write, digest_of, keep_part, open_part, write_json
from resight._version import __version__
from resight.descriptors._base import Describes
from resight.errors import StoreError
from resight.validation import parse_json

try:
    import fcntl
except ImportError:  # Windows refuses to delete open files, which is protection enough
    fcntl = None  # type: ignore[assignment]

SCHEMA = "resight.features/1"
FAILED = ""  # key of a row that could not be computed; it holds NaN
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Rows = NDArray[np.float32]


class DescriptorTables:
    """Vectors of one descriptor on disk, in a folder of the feature store `store`."""

    def __init__(self, store: Path, descriptor: Describes) -> None:
        self.descriptor = descriptor.name
        self.fingerprint = descriptor.fingerprint
        self.n_features = descriptor.n_features
        self.id = f"{descriptor.name}-{digest_of(descriptor.name, self.fingerprint)[:12]}"
        self.folder = store / self.id
        self.chunks = self.folder / "chunks"

    def create(self) -> None:
        """Make the folders."""
        with refusing_full_disk(self.chunks):
            self.chunks.mkdir(parents=True, exist_ok=True)
        self._remove_parts()

    def _remove_parts(self) -> None:
        """Remove what killed processes left half written."""
        for part in [*self.chunks.glob(".*.part"), *self.folder.glob(".*.part")]:
            with suppress(OSError):  # a living process writes it, or it is gone already
                with part.open("rb") as stream:
                    _lock(stream, wait=False)
                part.unlink()

    def chunk_path(self, keys: Sequence[str]) -> Path:
        """Name of the chunk file that holds exactly these rows."""
        return self.chunks / f"{digest_of(*keys)}.chunk"

    def table(self, keys: list[str]) -> Rows | None:
        """Return these rows if they lie side by side in a finished table."""
        path = self._table_path(keys)
        if path.exists() and path.with_suffix(".json").exists():
            return self._open(path, len(keys))
        for path, document in self._sidecars():
            stored = document["keys"]
            first = stored.index(keys[0]) if keys[0] in stored else len(stored)
            if stored[first : first + len(keys)] == keys:
                return self._open(path)[first : first + len(keys)]
        return None

    def lookup(self) -> Callable[[Sequence[str]], Rows]:
        """Return a function that reads rows which are stored now by their keys; else NaN."""
        # Tables come last: chunks may be removed at any time.
        places = {key: (path, row) for path, keys in self._files() for row, key in enumerate(keys)}
        places.pop(FAILED, None)

        def rows(keys: Sequence[str]) -> Rows:
            found = np.full((len(keys), self.n_features), np.nan, np.float32)
            for row, key in enumerate(keys):
                if key in places:
                    file, place = places[key]
                    with suppress(FileNotFoundError):  # a chunk that is in another's table now
                        found[row] = self._read(file)[place]
            return found

        return rows

    def known_keys(self, dataset: str) -> dict[str, set[str]]:
        """Keys under which each file of a dataset was stored so far, to notice changed files."""
        known: dict[str, set[str]] = {}
        for _, document in self._sidecars():
            if document["dataset"] == dataset:
                for path, key in zip(document["paths"], document["keys"], strict=True):
                    if key != FAILED:
                        known.setdefault(path, set()).add(key)
        return known

    def copy_into(self, table: GrowingTable) -> None:
        """Copy what there is of the rows that a table lacks."""
        for path, stored in self._files() if table.missing else ():
            if not table.missing.keys().isdisjoint(stored):
                with suppress(FileNotFoundError):
                    table.put(stored, self._read(path))

    def finish(
        self, table: GrowingTable, keys: list[str], dataset: str, paths: Sequence[str]
    ) -> Rows:
        """Keep a table that has all it can have, unless another process has finished one."""
        done = self.table(keys)
        if done is not None:
            return done
        path = self._table_path(keys)
        sidecar = {
            "schema": SCHEMA,
            "descriptor": self.descriptor,
            "fingerprint": self.fingerprint,
            "version": __version__,
            "n_features": self.n_features,
            "dataset": dataset,
            "paths": list(paths),
            "keys": keys,
        }
        with refusing_full_disk(path):
            table.keep(keys, path)
            write_json(path.with_suffix(".json"), sidecar)
        return self._open(path, len(keys))

    def sweep(self) -> None:
        """Remove chunks whose rows are all in tables, and what a worker left that was killed."""
        self._remove_parts()
        chunks = self._chunk_files()
        sidecars = self._sidecars() if chunks else ()
        done = {key for _, document in sidecars for key in document["keys"]}
        for path in chunks:
            with suppress(FileNotFoundError):
                if done.issuperset(read_chunk(path)[0]):
                    path.unlink()

    def _files(self) -> Iterator[tuple[Path, list[str]]]:
        """Every chunk, then every table (chunks may become one meanwhile), with their keys."""
        for path in self._chunk_files():
            with suppress(FileNotFoundError):  # another process finished its table and swept it
                yield path, read_chunk(path)[0]
        for path, document in self._sidecars():
            yield path, document["keys"]

    def _read(self, path: Path) -> Rows:
        return read_chunk(path)[1] if path.suffix == ".chunk" else self._open(path)

    def _open(self, path: Path, n_rows: int | None = None) -> Rows:
        try:
            rows: Rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise _damaged(path, error, f"{path.stem}.*") from error
        allowed = (n_rows if n_rows is not None else len(rows), self.n_features)
        if rows.shape != allowed or rows.dtype != np.float32:
            wrong = f"it holds {rows.dtype} {rows.shape} instead of float32 {allowed}"
            raise _damaged(path, wrong, f"{path.stem}.*")
        return rows

    def _table_path(self, keys: Sequence[str]) -> Path:
        return self.folder / f"{digest_of(*keys)}.npy"

    def _chunk_files(self) -> list[Path]:
        return sorted(self.chunks.glob("*.chunk"))

    def _sidecars(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                document = parse_json(path.read_text("utf-8"))
            except ValueError as error:
                raise _damaged(path, error, f"{path.stem}.*") from error
            if document.get("schema") != SCHEMA:
                raise StoreError(
                    f"{path} has schema {document.get('schema')!r}, this resight reads {SCHEMA!r}. "
                    "Use the resight that wrote it, or another --store folder"
                )
            if path.with_suffix(".npy").exists():
                yield path.with_suffix(".npy"), document


class GrowingTable:
    """Context for a file with a place for every row, which is removed unless it is kept.

    It is written while workers compute, so that little is left to do when the last one is ready.
    It will be in `folder`; of the `keys` of its rows, the same may come several times.
    """

    def __init__(self, folder: Path, keys: Sequence[str], n_features: int) -> None:
        self.missing: dict[str, list[int]] = {}  # places of the rows that are not here yet
        for row, key in enumerate(keys):
            self.missing.setdefault(key, []).append(row)
        self._shape = (len(keys), n_features)
        with refusing_full_disk(folder / "a table"):
            self._stream = open_part(folder / "table")
            _lock(self._stream)
            header = {"descr": "<f4", "fortran_order": False, "shape": self._shape}
            npy.write_array_header_1_0(self._stream, header)  # type: ignore[arg-type]
        self._start = self._stream.tell()

    def put(self, keys: Sequence[str], rows: Rows) -> None:
        """Write rows to all their places; those not wanted, or here already, are passed over."""
        wanted = {row: key for row, key in enumerate(keys) if key != FAILED and key in self.missing}
        if not wanted:
            return
        table = Path(self._stream.name).with_name("a table")  # named once it is known what failed
        with refusing_full_disk(table):
            for row, key in wanted.items():
                self._write(self.missing.pop(key, ()), rows[row])
            self._stream.flush()
            os.fsync(self._stream.fileno())  # now, beside the workers, and not at the end

    def keep(self, keys: Sequence[str], path: Path) -> None:
        """Keep the file as `path`, rows whose key is now FAILED as NaN."""
        failed = [row for row, key in enumerate(keys) if key == FAILED]
        self._write(failed, np.full(self._shape[1], np.nan, np.float32))
        keep_part(self._stream, path)

    def _write(self, places: Sequence[int], row: Rows) -> None:
        for place in places:
            self._stream.seek(self._start + place * 4 * self._shape[1])
            self._stream.write(np.ascontiguousarray(row, "<f4").data)

    def __enter__(self) -> GrowingTable:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # closing tries again to write what a full disk did not take
            self._stream.close()
        Path(self._stream.name).unlink(missing_ok=True)


def write_chunk(target: Path, keys: Sequence[str], rows: Rows) -> None:
    """Write a chunk file: the keys, then the rows, each as one npy array."""
    with refusing_full_disk(target), atomic_write(target) as stream:
        _lock(stream)
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
            raise _damaged(path, error, "it") from error
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


def _lock(stream: IO[Any], wait: bool = True) -> None:
    """Mark a file that is being written, so that nobody takes it for left over by a killed run."""
    if fcntl is not None:
        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _damaged(path: Path, why: object, files: str) -> StoreError:
    return StoreError(f"{path} is damaged ({why}). Delete {files}: what it held is computed again")
