"""Files of one descriptor in a feature store: chunks in the making and finished tables.

    NAME-FINGERPRINT/
        chunks/KEYS.chunk       some rows, written whole by one worker; removed once in a table
        ROWS.npy + ROWS.json    a finished table and its sidecar (written last: it says complete)

A row is known by a key made of the image's contents and box, so any table serves any selection of
the same images, under any file names. File names are digests of keys: two processes that do the
same work write the same bytes to the same names, whoever comes last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from resight._files import atomic_write, digest_of, write_json
from resight._version import __version__
from resight.errors import StoreError
from resight.experiments._chunks import (
    Describes,
    Rows,
    chunk_keys,
    chunk_rows,
    lock,
    refusing_full_disk,
    remove_if_abandoned,
)

SCHEMA = "resight.features/1"
FAILED = ""  # key of a row that could not be computed; it holds NaN
_OPEN_FILES = 64


class Place(NamedTuple):
    """Where a row is."""

    file: Path
    row: int


class Bank:
    """Rows of one descriptor, on disk.

    Parameters
    ----------
    store : Path
        Folder of the feature store.
    descriptor : object with name, n_features and fingerprint
    """

    def __init__(self, store: Path, descriptor: Describes) -> None:
        self.descriptor = descriptor.name
        self.fingerprint = descriptor.fingerprint
        self.n_features = descriptor.n_features
        self.id = f"{descriptor.name}-{digest_of(descriptor.name, self.fingerprint)[:12]}"
        self.folder = store / self.id
        self.chunks = self.folder / "chunks"

    def create(self) -> None:
        """Make the folders and remove what killed processes left half written."""
        with refusing_full_disk(self.chunks):
            self.chunks.mkdir(parents=True, exist_ok=True)
        for part in [*self.chunks.glob(".*.part"), *self.folder.glob(".*.part")]:
            remove_if_abandoned(part)

    def chunk_path(self, keys: Sequence[str]) -> Path:
        """Name of the chunk file that holds exactly these rows."""
        return self.chunks / f"{digest_of(*keys)}.chunk"

    def table(self, keys: Sequence[str]) -> Rows | None:
        """Return the finished table with exactly these rows in this order, or None."""
        path = self._table_path(keys)
        if not (path.exists() and path.with_suffix(".json").exists()):
            return None
        return self._open(path, len(keys))

    def places(self) -> dict[str, Place]:
        """Find every finished row, in tables first (chunks may be removed at any time)."""
        found: dict[str, Place] = {}
        for path in self._chunk_files():
            try:
                found.update((key, Place(path, row)) for row, key in enumerate(chunk_keys(path)))
            except FileNotFoundError:  # another process finished its table and swept this chunk
                continue
        for path, document in self._sidecars():
            rows = enumerate(document["keys"])
            found.update((key, Place(path, row)) for row, key in rows if key != FAILED)
        return found

    def known_keys(self, dataset: str) -> dict[str, set[str]]:
        """Keys under which each file of a dataset was stored so far, to notice changed files."""
        known: dict[str, set[str]] = {}
        for _, document in self._sidecars():
            if document["dataset"] == dataset:
                for path, key in zip(document["paths"], document["keys"], strict=True):
                    if key != FAILED:
                        known.setdefault(path, set()).add(key)
        return known

    def assemble(
        self, keys: Sequence[str], places: dict[str, Place], dataset: str, paths: Sequence[str]
    ) -> Rows:
        """Make the table of these rows from wherever they are, and drop chunks it made needless.

        Raises
        ------
        FileNotFoundError
            A row's chunk was removed meanwhile, because another process finished a table with it.
        """
        existing = self.table(keys)
        if existing is None:
            existing = self._slice(keys, places)
        if existing is not None:
            return existing
        path = self._table_path(keys)
        with refusing_full_disk(path):
            with atomic_write(path) as stream:
                lock(stream)
                shape = (len(keys), self.n_features)
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(stream, header)  # type: ignore[arg-type]
                for rows in self._runs(keys, places):
                    stream.write(np.ascontiguousarray(rows, "<f4").data)
            write_json(path.with_suffix(".json"), self._sidecar(keys, dataset, paths))
        return self._open(path, len(keys))

    def sweep(self) -> None:
        """Remove chunks whose rows are all in tables."""
        done = {key for _, document in self._sidecars() for key in document["keys"]}
        for path in self._chunk_files():
            try:
                if done.issuperset(chunk_keys(path)):
                    path.unlink()
            except FileNotFoundError:
                continue

    def _runs(self, keys: Sequence[str], places: dict[str, Place]) -> Iterator[Rows]:
        """Yield all rows in order, those that lie side by side in one file at once."""
        rows_of: Callable[[Path], Rows] = lru_cache(_OPEN_FILES)(self._read)
        missing = np.full((1, self.n_features), np.nan, np.float32)

        def start(item: tuple[int, str]) -> Place | None:
            index, key = item
            return None if key == FAILED else places[key]._replace(row=places[key].row - index)

        for place, run in groupby(enumerate(keys), start):
            indices = [index for index, _ in run]
            if place is None:
                yield from repeat(missing, len(indices))
            else:
                yield rows_of(place.file)[indices[0] + place.row : indices[-1] + place.row + 1]

    def _read(self, path: Path) -> Rows:
        return chunk_rows(path) if path.suffix == ".chunk" else self._open(path)

    def _slice(self, keys: Sequence[str], places: dict[str, Place]) -> Rows | None:
        """Return the rows as part of one table, if they lie there side by side."""
        first = places.get(keys[0]) if keys else None
        if first is None or first.file.suffix == ".chunk":
            return None
        wanted = [Place(first.file, first.row + step) for step in range(len(keys))]
        if [places.get(key) for key in keys] != wanted:
            return None
        return self._open(first.file)[first.row : first.row + len(keys)]

    def _open(self, path: Path, n_rows: int | None = None) -> Rows:
        try:
            rows: Rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise _damaged(path, str(error)) from error
        allowed = (n_rows if n_rows is not None else len(rows), self.n_features)
        if rows.shape != allowed or rows.dtype != np.float32:
            raise _damaged(path, f"it holds {rows.dtype} {rows.shape} instead of float32 {allowed}")
        return rows

    def _table_path(self, keys: Sequence[str]) -> Path:
        return self.folder / f"{digest_of(*keys)}.npy"

    def _chunk_files(self) -> list[Path]:
        return sorted(self.chunks.glob("*.chunk"))

    def _sidecar(
        self, keys: Sequence[str], dataset: str, paths: Sequence[str]
    ) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "descriptor": self.descriptor,
            "fingerprint": self.fingerprint,
            "version": __version__,
            "n_features": self.n_features,
            "dataset": dataset,
            "paths": list(paths),
            "keys": list(keys),
        }

    def _sidecars(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                document = json.loads(path.read_text("utf-8"))
            except ValueError as error:
                raise _damaged(path, str(error)) from error
            if document.get("schema") != SCHEMA:
                raise StoreError(
                    f"{path} has schema {document.get('schema')!r}, this resight reads {SCHEMA!r}. "
                    "Use the resight that wrote it, or another --out folder"
                )
            if path.with_suffix(".npy").exists():
                yield path.with_suffix(".npy"), document


def _damaged(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"{path} is damaged ({reason}). Delete {path.stem}.*: what it held is computed again"
    )
