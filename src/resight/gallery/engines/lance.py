"""LanceDB, read only: galleries that resight 0.1 kept in a folder or on an object store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import META, Batches, Column, Table


class LanceSource:
    """The tables of a gallery of 0.1, for `copying.convert`."""

    def __init__(self, uri: str) -> None:
        if find_spec("lancedb") is None:
            raise InputError(
                f"to convert {uri} the package lancedb is needed: pip install 'resight[convert]'"
            )
        import lancedb

        self.uri = uri
        if "://" not in uri and not (Path(uri) / "documents.lance").is_dir():
            raise StoreError(f"there is no gallery of resight 0.1 at {uri}; give its folder")
        with self._explaining("cannot be opened"):
            self._database: Any = lancedb.connect(uri)

    @contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError, OSError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
            raise StoreError(
                f"the gallery of resight 0.1 at {self.uri} {what} ({first}). For an object store "
                "check the address and the credentials in the environment"
            ) from error

    def _read(self, table: str, columns: list[str], where: str = "") -> Any:
        with self._explaining(f"cannot be read: table {table}"):
            search = self._database.open_table(table).search().select(columns)
            return (search.where(where) if where else search).limit(10**9).to_arrow()

    def exists(self) -> bool:
        """Whether there is a gallery; `get` says what is wrong if there is none."""
        return True

    def get(self, name: str) -> bytes | None:
        """Read a document."""
        found = self._read("documents", ["content"], f"name = '{name}'")
        return bytes(found["content"][0].as_py()) if found.num_rows else None

    def names(self, prefix: str) -> list[str]:
        """List documents."""
        found = self._read("documents", ["name"])["name"].to_pylist()
        return sorted(name for name in found if name.startswith(prefix))

    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return the entries of a journal, oldest first."""
        if journal == "models":  # 0.1 kept no history of models
            return []
        found = self._read(journal, ["key", "content", "number"]).sort_by("number")
        return list(zip(found["key"].to_pylist(), found["content"].to_pylist(), strict=True))

    def table(self) -> Table:
        """Return all sightings, each once."""
        found = self._read("sightings", META.split(", "))
        if not found.num_rows:
            return Table.empty()
        columns = [found[name].to_numpy() for name in META.split(", ")]
        numbers = (3, 6)  # time and added
        whole = Table(*(c.astype(float if i in numbers else str) for i, c in enumerate(columns)))
        order = np.lexsort((whole.ids, whole.added))
        _, first = np.unique(whole.ids[order], return_index=True)
        return whole.select(order[np.sort(first)])

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read images or descriptors of some sightings."""
        among = ", ".join(f"'{sighting}'" for sighting in ids)  # ids are hexadecimal digits
        found = self._read("sightings", ["id", column], f"id IN ({among})")
        return dict(zip(found["id"].to_pylist(), found[column].to_pylist(), strict=True))

    def embeddings(self, generation: int, width: int) -> Batches:
        """Yield the embeddings of a model."""
        for batch in self._read(f"embeddings_{generation}", ["id", "vector"]).to_batches():
            vectors = batch["vector"].flatten().to_numpy(zero_copy_only=False)
            yield batch["id"].to_numpy(zero_copy_only=False).astype(str), vectors.reshape(-1, width)
