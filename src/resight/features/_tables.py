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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from resight._files import digest_of, write_json
from resight._version import __version__
from resight.descriptors._base import Describes
from resight.errors import StoreError
from resight.features._chunks import (
    FAILED,
    GrowingTable,
    Rows,
    damaged,
    read_chunk,
    refusing_full_disk,
    remove_if_abandoned,
)
from resight.validation import parse_json

SCHEMA = "resight.features/1"


Place = tuple[Path, int]
"""File and row."""


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
        return _places(self._files())

    def rows(self, keys: Sequence[str], places: Mapping[str, Place]) -> Rows:
        """Read rows by what `places` gave, (n, n_features); NaN for those that are not there."""
        rows = np.full((len(keys), self.n_features), np.nan, np.float32)
        for row, key in enumerate(keys):
            if key in places:
                file, place = places[key]
                with suppress(FileNotFoundError):  # a chunk that is in another process's table now
                    rows[row] = self._read(file)[place]
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

    def place_chunk(self, keys: Sequence[str], table: GrowingTable) -> None:
        """Copy the chunk of these rows into a table, if there is one: not if all of them failed."""
        with suppress(FileNotFoundError):
            table.put(*read_chunk(self.chunk_path(keys)))

    def finish(
        self, table: GrowingTable, keys: Sequence[str], dataset: str, paths: Sequence[str]
    ) -> Rows | None:
        """Return the table of these rows: one that has them all, or this one, now completed.

        None means that chunks were removed meanwhile, because another process finished a table
        with them: their rows are to be looked for again.
        """
        files = list(self._files())
        for existing in (self.table(keys), self._slice(keys, _places(files))):
            if existing is not None:
                return existing
        for file, stored in files:
            if table.lacks(stored):
                with suppress(FileNotFoundError):
                    table.put(stored, self._read(file))
        path = self._table_path(keys)
        if not table.finish(keys, path):
            return None
        with refusing_full_disk(path):
            sidecar = {
                "schema": SCHEMA,
                "descriptor": self.descriptor,
                "fingerprint": self.fingerprint,
                "version": __version__,
                "n_features": self.n_features,
                "dataset": dataset,
                "paths": list(paths),
                "keys": list(keys),
            }
            write_json(path.with_suffix(".json"), sidecar)
        return self._open(path, len(keys))

    def sweep(self) -> None:
        """Remove chunks whose rows are all in tables."""
        chunks = self._chunk_files()
        sidecars = self._sidecars() if chunks else ()
        done = {key for _, document in sidecars for key in document["keys"]}
        for path in chunks:
            with suppress(FileNotFoundError):
                if done.issuperset(read_chunk(path)[0]):
                    path.unlink()

    def _files(self) -> Iterator[tuple[Path, list[str]]]:
        """Every chunk, then every table, with the keys of its rows."""
        for path in self._chunk_files():
            with suppress(FileNotFoundError):  # another process finished its table and swept it
                yield path, read_chunk(path)[0]
        for path, document in self._sidecars():
            yield path, document["keys"]

    def _read(self, path: Path) -> Rows:
        return read_chunk(path)[1] if path.suffix == ".chunk" else self._open(path)

    def _slice(self, keys: Sequence[str], places: dict[str, Place]) -> Rows | None:
        """Return the rows as part of one table, if they lie there side by side."""
        file, first = places.get(keys[0], (None, 0))
        wanted = [(file, first + step) for step in range(len(keys))]
        if file is None or file.suffix == ".chunk" or [*map(places.get, keys)] != wanted:
            return None
        return self._open(file)[first : first + len(keys)]

    def _open(self, path: Path, n_rows: int | None = None) -> Rows:
        try:
            rows: Rows = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise damaged(path, error, f"{path.stem}.*") from error
        allowed = (n_rows if n_rows is not None else len(rows), self.n_features)
        if rows.shape != allowed or rows.dtype != np.float32:
            wrong = f"it holds {rows.dtype} {rows.shape} instead of float32 {allowed}"
            raise damaged(path, wrong, f"{path.stem}.*")
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
                raise damaged(path, error, f"{path.stem}.*") from error
            if document.get("schema") != SCHEMA:
                raise StoreError(
                    f"{path} has schema {document.get('schema')!r}, this resight reads {SCHEMA!r}. "
                    "Use the resight that wrote it, or another --store folder"
                )
            if path.with_suffix(".npy").exists():
                yield path.with_suffix(".npy"), document


def _places(files: Iterable[tuple[Path, list[str]]]) -> dict[str, Place]:
    found = {key: (path, row) for path, keys in files for row, key in enumerate(keys)}
    found.pop(FAILED, None)
    return found
