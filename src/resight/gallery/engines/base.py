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

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.gallery.engines.database import Database
from resight.gallery.engines.rows import Floats32, Rows, Table
from resight.gallery.filters import Filter
from resight.validation import check_array

Column = Literal["image", "feature"]


# Layout 5 of the tables; layout 1 is the one that resight 0.1 made in PostgreSQL, 2 has no LEDGER.
# From layout 5 on answers may be of kinds and lengths that earlier versions cannot read.
# BLOB and SERIAL stand for what each engine calls them. Images and descriptors are in tables of
# their own, so that reading what is known about the sightings does not turn their pages over.
SIGHTINGS = """
CREATE TABLE documents (name text PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE journal (
    number SERIAL, name text NOT NULL, key text NOT NULL, content text NOT NULL);
CREATE TABLE sightings (
    number SERIAL, id text NOT NULL UNIQUE, person text NOT NULL, camera text NOT NULL,
    time float8, sequence text NOT NULL, source text NOT NULL, added float8 NOT NULL);
CREATE TABLE changes (number bigint NOT NULL);
INSERT INTO changes VALUES (0);
"""
BLOBS = """
CREATE TABLE images (
    id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, content BLOB NOT NULL);
CREATE TABLE features (
    id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, content BLOB NOT NULL);
CREATE INDEX journal_by_name ON journal (name, number);
"""
# Layout 3 added these. A row of the log outlives its values: erasing empties the last four columns.
LEDGER = """
CREATE TABLE log (
    number integer PRIMARY KEY, hash text NOT NULL, commitment text NOT NULL,
    salt text, act text, subject_salt text, subjects text);
CREATE TABLE users (name text PRIMARY KEY, role text NOT NULL, password text NOT NULL);
CREATE TABLE credentials (
    digest text PRIMARY KEY, name text NOT NULL, role text NOT NULL, kind text NOT NULL,
    purpose text NOT NULL, begun float8 NOT NULL, ends float8);
"""
TABLES = SIGHTINGS + BLOBS + LEDGER
LAYOUT = 5
META = "id, person, camera, time, sequence, source, added"

_PAGE, _PAGE_NUMBERS = 20_000, 40_000_000  # embeddings read at once, and numbers in them
_SAMPLE = 256  # rows that sizes are averaged over


class Engine(Database):
    """A place that keeps a gallery."""

    approximate = False  # whether `build_index` makes search quicker and approximate
    erasing_limits = ""  # what erasing cannot reach, with the administrator's commands

    # What the two dialects do not share, beside what `Database` has.
    _row = "rowid"
    _length = "length"  # of a value in bytes
    _embed = "INSERT INTO {} (id, vector) SELECT id, ? FROM sightings WHERE id = ?"
    _vector = (
        "id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, vector {type} NOT NULL"
    )

    def _vector_type(self, width: int) -> str:
        """Say in which column embeddings of so many numbers are kept."""
        return "BLOB"

    @abstractmethod
    def _to_vectors(self, embeddings: Floats32) -> Iterable[Any]:
        """Write embeddings as they are stored."""

    @abstractmethod
    def _from_vectors(self, stored: Sequence[Any], width: int) -> Floats32:
        """Read embeddings as they are stored, (len(stored), width)."""

    # Sightings.
    def add(self, rows: Rows, generation: int) -> None:
        """Add sightings with embeddings of `generation`; ids that exist stay as they are."""
        t = rows.table
        times = [None if np.isnan(time) else float(time) for time in t.times]
        texts = [a.tolist() for a in (t.ids, t.persons, t.cameras, t.sequences, t.sources)]
        columns = [*texts[:3], times, *texts[3:], t.added.tolist()]
        ids = texts[0]
        with self._change():
            self._many(
                f"INSERT INTO sightings ({META}) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                zip(*columns, strict=True),
            )
            self._add_blobs("images", ids, rows.images)
            if rows.features is not None:
                little = rows.features.dtype.newbyteorder("<")
                features = (row.astype(little).tobytes() for row in rows.features)
                self._add_blobs("features", ids, features)
            if rows.embeddings is not None:
                self.embed(generation, t, rows.embeddings)

    def _add_blobs(self, table: str, ids: Sequence[str], contents: Iterable[bytes]) -> None:
        statement = f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
        self._many(statement, zip(ids, contents, strict=True))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove sightings with all that belongs to them."""
        with self._change():
            for table in ("images", "features", *map(_embeddings, self.generations()), "sightings"):
                self._ask(f"DELETE FROM {table} WHERE id {self._in}", self._list(ids))

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of some ids that are sightings."""
        query = f"SELECT id FROM sightings WHERE id {self._in}"
        return {key for (key,) in self._ask(query, self._list(ids))}

    def table(self) -> Table:
        """Return all sightings, in the order in which they were added."""
        rows = self._ask(f"SELECT {META}, number FROM sightings ORDER BY added, id")
        if not rows:
            return Table.empty()
        columns = list(zip(*rows, strict=True))
        ids, persons, cameras, sequences, sources = (
            np.array(columns[i], str) for i in (0, 1, 2, 4, 5)
        )
        times, added = np.array(columns[3], float), np.array(columns[6], float)  # None becomes NaN
        numbers = np.array(columns[7], np.int64)
        return Table(ids, persons, cameras, times, sequences, sources, added, numbers)

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read images or descriptors (little endian) of some sightings."""
        query = f"SELECT id, content FROM {column}s WHERE id {self._in}"
        return {key: bytes(value) for key, value in self._ask(query, self._list(ids))}

    def sizes(self, generation: int) -> dict[str, float]:
        """Bytes of an image, a descriptor and an embedding, in the mean of some."""
        found = {}
        for name, table, column in (
            ("image", "images", "content"),
            ("descriptor", "features", "content"),
            ("embedding", _embeddings(generation), "vector"),
        ):
            some = f"SELECT {column} AS value FROM {table} LIMIT ?"
            [(mean,)] = self._ask(f"SELECT avg({self._length}(value)) FROM ({some}) s", _SAMPLE)
            found[name] = float(mean or 0.0)
        return found

    # Embeddings.
    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings with `width` columns, replacing a leftover."""
        with self.transaction():
            self._ask(f"DROP TABLE IF EXISTS {_embeddings(generation)}")
            columns = self._vector.format(type=self._vector_type(int(width)))
            self._ask(f"CREATE TABLE {_embeddings(generation)} ({columns})")

    def drop_generation(self, generation: int) -> None:
        """Remove the embeddings of a generation, if there are any."""
        with self._change():
            self._ask(f"DROP TABLE IF EXISTS {_embeddings(generation)}")

    def generations(self) -> list[int]:
        """List the generations that have a table of embeddings."""
        prefix = _embeddings("")
        return sorted(int(n.removeprefix(prefix)) for n in self._tables() if n.startswith(prefix))

    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Store embeddings of sightings that exist: derived, so nobody need read again."""
        check_array(embeddings, "embeddings", (len(table), None))
        statement = self._embed.format(_embeddings(generation)) + " ON CONFLICT (id) DO NOTHING"
        with self.transaction():
            self._many(
                statement, zip(self._to_vectors(embeddings), table.ids.tolist(), strict=True)
            )

    def embeddings(
        self, generation: int, width: int, where: Filter | None = None
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield (ids, embeddings) in batches, in any order; no more than a batch is in memory.

        `where.persons` is not looked at: labels belong to the gallery.
        """
        allowed, given = self._condition(where or Filter())
        row, joined = f"e.{self._row}", "JOIN sightings s ON s.id = e.id " if allowed else ""
        parts, values = allowed, given
        page = max(1, min(_PAGE, _PAGE_NUMBERS // width))
        while True:
            rows = self._ask(
                f"SELECT {row}, e.id, e.vector FROM {_embeddings(generation)} e {joined}"
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
        rows = self._ask(self._numbered("s.number", generation) + order, first, stop)
        return np.array([number for (number,) in rows], np.int64)

    def vectors(
        self, generation: int, width: int, first: int, stop: int
    ) -> tuple[NDArray[np.int64], Floats32]:
        """Return numbers in a range that have an embedding, and these, in any order."""
        rows = self._ask(self._numbered("s.number, e.vector", generation), first, stop)
        numbers = np.array([number for number, _ in rows], np.int64)
        return numbers, self._from_vectors([vector for _, vector in rows], width)

    def _numbered(self, columns: str, generation: int) -> str:
        joined = f"sightings s JOIN {_embeddings(generation)} e ON e.id = s.id"
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
        return {key for (key,) in self._ask(f"SELECT id FROM {_embeddings(generation)}")}

    def build_index(self, generation: int) -> None:
        """Build the engine's approximate index over the embeddings of a generation."""
        raise InputError(
            f"gallery {self.uri}: SQLite has no approximate index; above the memory limit it is "
            "searched exactly from the disk. For approximate search keep the gallery in PostgreSQL "
            "(resight gallery backup, then restore it into postgresql://...)"
        )

    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
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
    def purge(
        self, needles: Sequence[bytes], *, rewrite: bool = False, only: Sequence[str] | None = None
    ) -> dict[str, set[bytes]]:
        """Erase from the medium what was removed, as far as a client can; return what is left.

        That is place -> needles that must not be there any longer and were found. `rewrite` writes
        everything anew in any case, not only where a needle is found; `only` are the tables from
        which something was removed, if that is known.
        """

    @abstractmethod
    def traces(self, needles: Sequence[bytes]) -> dict[str, set[bytes]]:
        """Say where any of these byte strings is still kept: place -> needles."""

    @abstractmethod
    def verify(self) -> list[str]:
        """Read everything once; return one sentence for each thing that is damaged."""

    @contextmanager
    @abstractmethod
    def claimed(self, what: str) -> Iterator[None]:
        """Do something that only one process may do at a time; a second one is refused."""


def _embeddings(generation: int | str) -> str:
    return f"embeddings_{generation}"
