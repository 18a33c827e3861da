"""LanceDB, first part: the connection, documents and journals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from resight.gallery.engines._lance_tables import (
    DOCUMENTS,
    JOURNAL,
    SIGHTINGS,
    delete,
    in_words,
    quoted,
    read,
)
from resight.gallery.engines.base import Engine

_JOURNALS = ("labels", "access")
_SCATTERED = 64  # fragments of a journal before they are joined


class LanceDocuments(Engine):
    """The tables of a gallery, its documents and its journals."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._local = None if "://" in uri else Path(uri)
        self._database: Any = None

    @property
    def _db(self) -> Any:
        if self._database is None:
            # Interval 0: every read looks for versions that other processes committed.
            self._database = lancedb.connect(self.uri, read_consistency_interval=timedelta(0))
        return self._database

    def _names(self) -> list[str]:
        names: list[str] = []
        page: str | None = None
        while True:
            answer = self._db.list_tables(page_token=page)
            names += answer.tables
            page = answer.page_token
            if not page:
                return names

    def _open(self, name: str) -> Any:
        return self._db.open_table(name)

    @in_words
    def exists(self) -> bool:
        """Whether there is a gallery: a folder without our tables is none."""
        if self._local is not None and not self._local.is_dir():
            return False
        return "documents" in self._names()

    @in_words
    def create(self) -> None:
        """Make the empty tables; documents come last and mark the gallery as there."""
        self._db.create_table("sightings", schema=SIGHTINGS)
        for journal in _JOURNALS:
            self._db.create_table(journal, schema=JOURNAL)
        self._db.create_table("documents", schema=DOCUMENTS)

    @in_words
    def version(self) -> tuple[object, object]:
        """Return the versions of the tables."""
        documents, sightings, labels = (
            self._open(name).version for name in ("documents", "sightings", "labels")
        )
        return (documents, sightings), labels

    @in_words
    def get(self, name: str) -> bytes | None:
        """Read a document."""
        found = read(self._open("documents"), ["content"], f"name = {quoted(name)}")
        return bytes(found["content"][0].as_py()) if found.num_rows else None

    @in_words
    def put(self, documents: dict[str, bytes]) -> None:
        """Write documents in one commit."""
        rows = pa.table([list(documents), list(documents.values())], schema=DOCUMENTS)
        merge = self._open("documents").merge_insert("name")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    @in_words
    def names(self, prefix: str) -> list[str]:
        """List documents."""
        found = read(self._open("documents"), ["name"])["name"].to_pylist()
        return sorted(name for name in found if name.startswith(prefix))

    @in_words
    def drop(self, names: Sequence[str]) -> None:
        """Remove documents."""
        delete(self._open("documents"), "name", names)

    @in_words
    def append(self, journal: str, key: str, text: str) -> None:
        """Add one entry; many small fragments are joined now and then."""
        table = self._open(journal)
        table.add(pa.table([[key], [text], [time.time_ns()]], schema=JOURNAL))
        if table.version % _SCATTERED == 0:
            table.optimize(cleanup_older_than=timedelta(hours=1))

    @in_words
    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return the entries in the order of their times."""
        found = read(self._open(journal), JOURNAL.names).sort_by([("number", "ascending")])
        return list(zip(found["key"].to_pylist(), found["content"].to_pylist(), strict=True))

    @in_words
    def strike(self, journal: str, keys: Sequence[str]) -> None:
        """Remove entries."""
        delete(self._open(journal), "key", keys)

    def close(self) -> None:
        """Forget the connection (LanceDB keeps no server)."""
        self._database = None
