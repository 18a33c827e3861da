"""What a gallery needs from a database, in the SQL that SQLite and PostgreSQL share.

An engine knows rows, documents and journals; it knows no images, models or labels. Its promises:

- every change is one durable transaction: before it returns nobody sees any of it, afterwards it
  stays; changes made inside `transaction` are one change together;
- changes of all processes happen one after the other, so what is read inside `transaction` holds
  until its end;
- a sighting's image, descriptor and embeddings exist only as long as its row does;
- embeddings are derived data of one *generation* (one model); rows without an embedding may appear
  when a model is replaced while another process adds, and the gallery fills them in.
"""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, StoreError
from resight.gallery.engines.scanning import Needles, Traces
from resight.gallery.filters import Filter
from resight.validation import check_array

Floats32 = NDArray[np.float32]
Column = Literal["image", "feature"]
Batches = Iterator[tuple[NDArray[np.str_], Floats32]]  # ids and embeddings
Numbered = tuple[NDArray[np.int64], Floats32]
Near = tuple[list[str], Floats32]


def script(name: str) -> str:
    """Read an SQL file of this folder; each engine replaces BLOB and SERIAL by types of its own."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("--"))


# Layout 5 of the tables; 1 is the one that resight 0.1 made in PostgreSQL, no release wrote others.
ADDED = script("tables_added_after_1.sql")
TABLES = script("tables.sql") + ADDED
LAYOUT = 5
META = "id, person, camera, time, sequence, source, added"

WAIT = 60.0  # seconds that a change waits for other processes
_PAGE, _PAGE_NUMBERS = 20_000, 40_000_000  # embeddings read at once, and numbers in them


@dataclass(frozen=True)
class Table:
    """What is known about each sighting, without its image and numbers: one row each."""

    ids: NDArray[np.str_]
    persons: NDArray[np.str_]
    cameras: NDArray[np.str_]
    times: NDArray[np.float64]
    sequences: NDArray[np.str_]
    sources: NDArray[np.str_]
    added: NDArray[np.float64]
    # As the database gave them: they rise with every addition and are never given again.
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Table:
        """Return some rows, in the order asked for."""
        return Table(*(column[rows] if len(column) else column for column in vars(self).values()))


def or_none(values: NDArray[np.float64]) -> NDArray[Any]:
    """Write what is not known as None instead of NaN."""
    known = values.astype(object)
    known[np.isnan(values)] = None
    return known


@dataclass(frozen=True)
class Rows:
    """New sightings, complete."""

    table: Table
    images: list[bytes]  # as they are stored
    features: NDArray[np.floating[Any]] | None  # (n, d), stored as given; None keeps none
    embeddings: Floats32 | None  # (n, r); they may follow later


class Engine(ABC):
    """A place that keeps a gallery."""

    approximate = False  # whether `build_index` makes search quicker and approximate
    erasing_limits = ""  # what erasing cannot reach, with the administrator's commands

    # What the two dialects do not share.
    _mark = "?"
    _in = "IN (SELECT value FROM json_each(?))"
    _begin: tuple[str, ...] = ("BEGIN IMMEDIATE",)
    _begin_reading = "BEGIN"
    _errors: tuple[type[Exception], ...] = ()
    _row = "rowid"
    _embed = "INSERT INTO {} (id, vector) SELECT id, ? FROM sightings WHERE id = ?"
    _vector = "id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, vector {} NOT NULL"

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.place = re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:***@", uri)  # what may be shown of it
        self.wait = WAIT
        self._lock = threading.RLock()
        self._depth = 0
        self._connection: Any = None

    @abstractmethod
    def _open(self) -> Any:
        """Return a new connection; each statement is a transaction of its own."""

    @abstractmethod
    def _check_layout(self) -> None:
        """Refuse tables that are not ours or of another layout; migrate those of 0.1."""

    @abstractmethod
    def _explained(self, error: Exception) -> StoreError:
        """Say in words what the driver raised."""

    @abstractmethod
    def _tables(self) -> list[str]:
        """List the tables of this gallery."""

    @abstractmethod
    def create(self) -> None:
        """Make the empty tables, unless they are here."""

    def _list(self, values: Sequence[str]) -> Any:
        """Pass a list of texts to a statement."""
        return json.dumps(list(values))

    def exists(self) -> bool:
        """Whether our tables are here; nothing is created by looking."""
        return "documents" in self._tables()

    def _connected(self) -> Any:
        if self._connection is None or getattr(self._connection, "closed", False):
            self._connection = self._open()
            try:
                self._check_layout()
            except BaseException:
                self.close()
                raise
        return self._connection

    def _require_layout(self, layout: int) -> None:
        if layout != LAYOUT:
            newer = f"reads up to {LAYOUT}. Update resight: pip install --upgrade resight"
            older = f"reads {LAYOUT}, and no release wrote that one. Create the gallery again"
            raise StoreError(
                f"gallery {self.place} has layout {layout}; this resight "
                f"{newer if layout > LAYOUT else older}"
            )

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    # Statements.
    @contextmanager
    def _explaining(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except self._errors as error:
                raise self._explained(error) from error

    @contextmanager
    def transaction(self, *, reading: bool = False) -> Iterator[None]:
        """Make all inside one change, or (`reading`) look at one state; within another, join it."""
        with self._explaining():
            if self._depth:
                yield
                return
            connection = self._connected()
            self._depth = 1
            try:
                for statement in (self._begin_reading,) if reading else self._begin:
                    connection.execute(statement)
                yield
                connection.execute("COMMIT")
            except BaseException:
                with suppress(*self._errors):  # a lost connection, a full disk: undone already
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def ask(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement, with a ``?`` for each value; return its rows."""
        with self._explaining():
            cursor = self._connected().execute(statement.replace("?", self._mark), values)
            return list(cursor.fetchall()) if cursor.description else []

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each of some rows of values."""
        with self._explaining():
            self._connected().cursor().executemany(statement.replace("?", self._mark), list(rows))

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self.transaction():
            yield
            self.ask("UPDATE changes SET number = number + 1")

    def version(self) -> tuple[object, object]:
        """Return tokens that differ after any change: of all but the labels, and of the labels."""
        last = "SELECT max(number) FROM journal WHERE name = 'labels'"
        [(changes, label)] = self.ask(f"SELECT number, ({last}) FROM changes")
        return changes, label

    # Documents: named bytes, replaced as a whole.
    def get(self, name: str) -> bytes | None:
        """Read a document, None if there is none of that name."""
        found = self.ask("SELECT content FROM documents WHERE name = ?", name)
        return bytes(found[0][0]) if found else None

    def large(self, name: str) -> bytes | memoryview:
        """Read a document that may be large, such as a model's arrays; empty if there is none."""
        return self.get(name) or b""

    def put(self, documents: dict[str, bytes], *, searched: bool = True) -> None:
        """Write documents; nobody reads the gallery again for those that no search looks at."""
        statement = "INSERT INTO documents VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        with self._change() if searched else self.transaction():
            self.many(statement + "SET content = excluded.content", documents.items())

    def names(self, prefix: str) -> list[str]:
        """List documents whose name begins with `prefix`, sorted."""
        found = (name for (name,) in self.ask("SELECT name FROM documents"))
        return sorted(name for name in found if name.startswith(prefix))

    def drop(self, names: Sequence[str], *, searched: bool = True) -> None:
        """Remove documents."""
        with self._change() if searched else self.transaction():
            self.ask(f"DELETE FROM documents WHERE name {self._in}", self._list(names))

    # Journals: texts with a key, in the order in which they were written.
    def append(self, journal: str, key: str, text: str) -> None:
        """Write one entry; durable on return."""
        statement = "INSERT INTO journal (name, key, content) VALUES (?, ?, ?)"
        with self.transaction():
            self.ask(statement, journal, key, text)

    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return all entries as (key, text), oldest first."""
        query = "SELECT key, content FROM journal WHERE name = ? ORDER BY number"
        return [(key, text) for key, text in self.ask(query, journal)]

    def amend(self, journal: str, struck: Sequence[str], texts: dict[str, str]) -> None:
        """Remove entries, and replace the texts of others, which keep their places."""
        amend = "UPDATE journal SET content = ? WHERE name = ? AND key = ?"
        strike = f"DELETE FROM journal WHERE name = ? AND key {self._in}"
        with self._change():
            self.ask(strike, journal, self._list(struck))
            self.many(amend, [(text, journal, key) for key, text in texts.items()])

    # Sightings.
    def add(self, rows: Rows, generation: int) -> None:
        """Add sightings with embeddings of `generation`; ids that exist stay as they are."""
        known = vars(rows.table) | {"times": or_none(rows.table.times)}
        *columns, _ = (column.tolist() for column in known.values())
        with self._change():
            self.many(
                f"INSERT INTO sightings ({META}) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                zip(*columns, strict=True),
            )
            blobs = {"images": rows.images}
            if rows.features is not None:
                little = rows.features.dtype.newbyteorder("<")
                blobs["features"] = [row.astype(little).tobytes() for row in rows.features]
            for name, contents in blobs.items():
                statement = f"INSERT INTO {name} VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
                self.many(statement, zip(columns[0], contents, strict=True))
            if rows.embeddings is not None:
                self.embed(generation, rows.table.ids, rows.embeddings)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove sightings with all that belongs to them."""
        with self._change():
            vectors = [f"embeddings_{generation}" for generation in self.generations()]
            for table in ("images", "features", *vectors, "sightings"):
                self.ask(f"DELETE FROM {table} WHERE id {self._in}", self._list(ids))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of some ids that are sightings."""
        query = f"SELECT id FROM sightings WHERE id {self._in}"
        return {key for (key,) in self.ask(query, self._list(ids))}

    def table(self) -> Table:
        """Return all sightings, in the order in which they were added."""
        rows = self.ask(f"SELECT {META}, number FROM sightings ORDER BY added, id")
        columns = zip(*rows, strict=True) if rows else [()] * 8
        kinds = (str, str, str, float, str, str, float, np.int64)  # a time that is None becomes NaN
        return Table(*map(np.array, columns, kinds))

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read images or descriptors (little endian) of some sightings."""
        query = f"SELECT id, content FROM {column}s WHERE id {self._in}"
        return {key: bytes(value) for key, value in self.ask(query, self._list(ids))}

    # Embeddings.
    def _vector_type(self, width: int) -> str:
        """Say in which column embeddings of so many numbers are kept."""
        return "BLOB"

    def _to_vectors(self, embeddings: Floats32) -> Iterable[Any]:
        """Write embeddings as they are stored."""
        return (row.tobytes() for row in np.ascontiguousarray(embeddings, "<f4"))

    def _from_vectors(self, stored: Sequence[Any], width: int) -> Floats32:
        """Read embeddings as they are stored, (len(stored), width)."""
        return np.frombuffer(b"".join(stored), "<f4").reshape(-1, width)

    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings with `width` columns, replacing a leftover."""
        with self.transaction():
            self.ask(f"DROP TABLE IF EXISTS embeddings_{generation}")
            columns = self._vector.format(self._vector_type(int(width)))
            self.ask(f"CREATE TABLE embeddings_{generation} ({columns})")

    def drop_generation(self, generation: int) -> None:
        """Remove the embeddings of a generation, if there are any."""
        with self._change():
            self.ask(f"DROP TABLE IF EXISTS embeddings_{generation}")

    def generations(self) -> list[int]:
        """List the generations that have a table of embeddings."""
        found = (name.rpartition("embeddings_") for name in self._tables())
        return sorted(int(number) for _, prefix, number in found if prefix)

    def embed(self, generation: int, ids: NDArray[np.str_], embeddings: Floats32) -> None:
        """Store embeddings of those sightings that exist: derived, so nobody need read again."""
        check_array(embeddings, "embeddings", (len(ids), None))
        statement = self._embed.format(f"embeddings_{generation}") + " ON CONFLICT (id) DO NOTHING"
        with self.transaction():
            self.many(statement, zip(self._to_vectors(embeddings), ids.tolist(), strict=True))

    def embeddings(self, generation: int, width: int, where: Filter | None = None) -> Batches:
        """Yield (ids, embeddings) in batches, in any order; `where.persons` is not looked at."""
        allowed, given = self._condition(where or Filter())
        row, joined = f"e.{self._row}", "JOIN sightings s ON s.id = e.id " if allowed else ""
        parts, values = allowed, given
        page = max(1, min(_PAGE, _PAGE_NUMBERS // width))
        while True:
            rows = self.ask(
                f"SELECT {row}, e.id, e.vector FROM embeddings_{generation} e {joined}"
                + (f"WHERE {' AND '.join(parts)} " if parts else "")
                + f"ORDER BY {row} LIMIT {page}",
                *values,
            )
            if rows:
                _, ids, vectors = zip(*rows, strict=True)
                yield np.array(ids, str), self._from_vectors(vectors, width)
                parts, values = [*allowed, f"{row} > ?"], [*given, rows[-1][0]]
            if len(rows) < page:
                return

    def numbers(self, generation: int, first: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers in a range that have an embedding, in the order of `table`."""
        order = "ORDER BY s.added, s.id"
        rows = self.ask(self._numbered("s.number", generation) + order, first, stop)
        return np.array([number for (number,) in rows], np.int64)

    def vectors(self, generation: int, width: int, first: int, stop: int) -> Numbered:
        """Return numbers in a range that have an embedding, and these, in any order."""
        rows = self.ask(self._numbered("s.number, e.vector", generation), first, stop)
        numbers = np.array([number for number, _ in rows], np.int64)
        return numbers, self._from_vectors([vector for _, vector in rows], width)

    def _numbered(self, columns: str, generation: int) -> str:
        joined = f"sightings s JOIN embeddings_{generation} e ON e.id = s.id"
        return f"SELECT {columns} FROM {joined} WHERE s.number >= ? AND s.number < ? "

    def _condition(self, where: Filter) -> tuple[list[str], list[Any]]:
        """Write a filter on the sightings `s` as SQL, with the values for its places."""
        used: dict[str, Any] = {}
        if where.cameras:
            used[f"s.camera {self._in}"] = self._list(where.cameras)
        if where.exclude_cameras:
            used[f"NOT s.camera {self._in}"] = self._list(where.exclude_cameras)
        if where.after is not None:
            used["s.time >= ?"] = where.after
        if where.before is not None:
            used["s.time <= ?"] = where.before
        return [*used], [*used.values()]

    def embedded(self, generation: int) -> set[str]:
        """Return the ids that have an embedding of a generation, without reading the vectors."""
        return {key for (key,) in self.ask(f"SELECT id FROM embeddings_{generation}")}

    def build_index(self, generation: int) -> None:
        """Build the engine's approximate index over the embeddings of a generation."""
        raise InputError(
            f"gallery {self.uri}: SQLite has no approximate index; above the memory limit it is "
            "searched exactly from the disk. For approximate search keep the gallery in PostgreSQL "
            "(resight gallery backup, then restore it into postgresql://...)"
        )

    def nearest(self, generation: int, query: Floats32, k: int, where: Filter, exact: bool) -> Near:
        """Read all embeddings batch by batch and keep the k nearest: exact, in little memory."""
        from resight.gallery.index import ExactIndex

        ids, vectors = np.empty(0, str), np.empty((0, len(query)), np.float32)
        for more, its in self.embeddings(generation, len(query), where):
            ids, vectors = np.concatenate([ids, more]), np.concatenate([vectors, its])
            [(rows, _)] = ExactIndex(vectors).search(query[None], k)
            ids, vectors = ids[rows], vectors[rows]
        return ids.tolist(), vectors

    # Care.
    @abstractmethod
    def purge(self, needles: Needles, rewrite: bool = False, only: Sequence[str] = ()) -> Traces:
        """Erase from the medium what was removed, as far as a client can; return what is left.

        `rewrite` writes everything anew in any case, not only where a needle is found; `only` are
        the tables from which something was removed, if that is known.
        """

    @abstractmethod
    def traces(self, needles: Needles) -> Traces:
        """Say where any of these byte strings is still kept: place -> needles."""

    @abstractmethod
    def verify(self) -> list[str]:
        """Read everything once; return one sentence for each thing that is damaged."""
