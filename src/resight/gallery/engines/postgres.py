"""PostgreSQL with pgvector: a gallery for many users at once.

Every change is one transaction, so a lost connection or a killed process leaves nothing half done.
All tables live in one schema, named by the part of the URI after ``#`` (default ``resight``).
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector.psycopg import register_vector
from psycopg import sql

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import Column, Engine, Floats32, Rows, Table
from resight.gallery.filters import Filter

_TABLES = """
CREATE TABLE documents (name text PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE journal (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL, key text NOT NULL, content text NOT NULL);
CREATE TABLE sightings (
    number bigint GENERATED ALWAYS AS IDENTITY, id text PRIMARY KEY, person text NOT NULL,
    camera text NOT NULL, time float8, sequence text NOT NULL, source text NOT NULL,
    added float8 NOT NULL, image bytea NOT NULL, feature bytea NOT NULL);
CREATE TABLE changes (number bigint NOT NULL);
INSERT INTO changes VALUES (0);
"""
_META = "id, person, camera, time, sequence, source, added"


class PostgresEngine(Engine):
    """A gallery as tables of one schema of a PostgreSQL database."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        address, _, name = uri.partition("#")
        if name and not re.fullmatch(r"[a-z][a-z0-9_]{0,50}", name):
            raise InputError(
                f"gallery name {name!r} after '#': use a letter, then letters, digits or '_' "
                "(lower case)"
            )
        self._address = address
        self._schema = name or "resight"
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """One transaction on a live connection; what the driver raises is put in words."""
        with self._lock:
            try:
                connection = self._connected()
                with connection.transaction():
                    yield connection
            except psycopg.Error as error:
                raise self._explained(error) from error

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            connection = psycopg.connect(self._address, autocommit=True, connect_timeout=10)
            schema = sql.Identifier(self._schema)
            connection.execute(sql.SQL("SET search_path TO {}, public").format(schema))
            if connection.execute("SELECT to_regtype('vector')").fetchone() != (None,):
                register_vector(connection)
            weakref.finalize(self, connection.close)  # galleries need not be closed by hand
            self._connection = connection
        return self._connection

    def _explained(self, error: psycopg.Error) -> StoreError:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        where = f"gallery {_without_password(self.uri)}"
        if isinstance(error, psycopg.OperationalError):
            return StoreError(
                f"{where}: no connection to the database, or it was lost ({first}). Nothing of "
                "this "
                "step was stored, everything before it is safe; run the same command again once "
                "the server answers"
            )
        return StoreError(
            f"{where}: the database refused ({first}). `resight gallery check` lists what is wrong"
        )

    def exists(self) -> bool:
        """Whether the schema has our tables."""
        with self._transaction() as c:
            return c.execute(
                "SELECT to_regclass(%s)", (f"{self._schema}.documents",)
            ).fetchone() != (None,)

    def create(self) -> None:
        """Make schema, extension and tables in one transaction."""
        with self._transaction() as c:
            c.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            c.execute(
                sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self._schema))
            )
            c.execute(_TABLES)
        self.close()  # the next connection knows the vector type

    @contextmanager
    def _change(self) -> Iterator[psycopg.Connection[Any]]:
        with self._transaction() as c:
            yield c
            c.execute("UPDATE changes SET number = number + 1")

    def version(self) -> tuple[object, object]:
        """Return the number of changes so far, and the last label."""
        with self._transaction() as c:
            changes = c.execute("SELECT number FROM changes").fetchone()
            query = "SELECT max(number) FROM journal WHERE name = 'labels'"
            return changes, c.execute(query).fetchone()

    def get(self, name: str) -> bytes | None:
        """Read a document."""
        with self._transaction() as c:
            row = c.execute("SELECT content FROM documents WHERE name = %s", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, documents: dict[str, bytes]) -> None:
        """Write documents in one transaction."""
        with self._change() as c:
            c.cursor().executemany(
                "INSERT INTO documents VALUES (%s, %s) ON CONFLICT (name) DO UPDATE "
                "SET content = excluded.content",
                list(documents.items()),
            )

    def names(self, prefix: str) -> list[str]:
        """List documents."""
        with self._transaction() as c:
            rows = c.execute("SELECT name FROM documents").fetchall()
        return sorted(name for (name,) in rows if name.startswith(prefix))

    def drop(self, names: Sequence[str]) -> None:
        """Remove documents."""
        with self._change() as c:
            c.execute("DELETE FROM documents WHERE name = ANY(%s)", (list(names),))

    def append(self, journal: str, key: str, text: str) -> None:
        """Add one entry."""
        with self._transaction() as c:
            c.execute(
                "INSERT INTO journal (name, key, content) VALUES (%s, %s, %s)", (journal, key, text)
            )

    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return the entries in the order of insertion."""
        query = "SELECT key, content FROM journal WHERE name = %s ORDER BY number"
        with self._transaction() as c:
            return [(key, text) for key, text in c.execute(query, (journal,)).fetchall()]

    def strike(self, journal: str, keys: Sequence[str]) -> None:
        """Remove entries."""
        with self._change() as c:
            c.execute(
                "DELETE FROM journal WHERE name = %s AND key = ANY(%s)", (journal, list(keys))
            )

    def add(self, rows: Rows, generation: int) -> None:
        """Add sightings and embeddings in one transaction."""
        t = rows.table
        features = [row.astype("<f4").tobytes() for row in rows.features]
        values = zip(*_lists(t), rows.images, features, strict=True)
        with self._change() as c:
            c.cursor().executemany(
                f"INSERT INTO sightings ({_META}, image, feature) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING",
                list(values),
            )
            _insert_embeddings(c, generation, t, rows.embeddings)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows everywhere in one transaction."""
        generations = self.generations()
        with self._change() as c:
            c.execute("DELETE FROM sightings WHERE id = ANY(%s)", (list(ids),))
            for generation in generations:
                c.execute(_about("DELETE FROM {} WHERE id = ANY(%s)", generation), (list(ids),))

    def table(self) -> Table:
        """Read what is known about the sightings."""
        with self._transaction() as c:
            rows = c.execute(f"SELECT {_META} FROM sightings ORDER BY added, id").fetchall()
        if not rows:
            return Table.empty()
        columns = list(zip(*rows, strict=True))
        times = np.array([np.nan if time is None else time for time in columns[3]], float)
        ids, persons, cameras, sequences, sources = (
            np.array(columns[i], str) for i in (0, 1, 2, 4, 5)
        )
        added = np.array(columns[6], float)
        return Table(ids, persons, cameras, times, sequences, sources, added)

    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read one column of some rows."""
        query = sql.SQL("SELECT id, {} FROM sightings WHERE id = ANY(%s)")
        with self._transaction() as c:
            rows = c.execute(query.format(sql.Identifier(column)), (list(ids),)).fetchall()
        return {key: bytes(value) for key, value in rows}

    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings."""
        with self._change() as c:
            c.execute(_about("DROP TABLE IF EXISTS {}", generation))
            columns = "(id text PRIMARY KEY, camera text NOT NULL, time float8, "
            columns += f"vector vector({width}) NOT NULL)"
            c.execute(_about("CREATE TABLE {} " + columns, generation))

    def drop_generation(self, generation: int) -> None:
        """Remove a table of embeddings."""
        with self._change() as c:
            c.execute(_about("DROP TABLE IF EXISTS {}", generation))

    def generations(self) -> list[int]:
        """List tables of embeddings."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
        query += " AND tablename LIKE 'embeddings\\_%%'"
        with self._transaction() as c:
            return sorted(
                int(n.split("_")[1]) for (n,) in c.execute(query, (self._schema,)).fetchall()
            )

    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Store embeddings of sightings."""
        with self._change() as c:
            _insert_embeddings(c, generation, table, embeddings)

    def embeddings(
        self, generation: int, width: int
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield the table of embeddings in batches."""
        batches = []
        with self._transaction() as c, c.cursor("embeddings", binary=True) as cursor:
            cursor.execute(_about("SELECT id, vector FROM {}", generation))
            while rows := cursor.fetchmany(20_000):
                ids, vectors = zip(*rows, strict=True)
                batches.append((np.array(ids, str), np.stack([v.to_numpy() for v in vectors])))
        return iter(batches)

    def build_index(self, generation: int) -> None:
        """Build pgvector's HNSW index and an index for the filters."""
        with self._change() as c:
            c.execute("SET LOCAL maintenance_work_mem = '1GB'")
            c.execute(_about("CREATE INDEX ON {} USING hnsw (vector vector_l2_ops)", generation))
            c.execute(_about("CREATE INDEX ON {} (camera, time)", generation))

    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
        """Search by scan or by index; the index goes on until the filter has let k through."""
        condition, values = _condition(where)
        search = _about(
            f"SELECT id, vector FROM {{}} {condition} ORDER BY vector <-> %s LIMIT %s", generation
        )
        with self._transaction() as c:
            if exact:
                c.execute("SET LOCAL enable_indexscan = off")
            else:
                c.execute("SET LOCAL hnsw.iterative_scan = strict_order")
                c.execute(f"SET LOCAL hnsw.ef_search = {max(200, min(1000, 4 * int(k)))}")
            rows = c.execute(search, (*values, query.astype(np.float32), int(k))).fetchall()
        vectors = [vector.to_numpy() for _, vector in rows]
        return [key for key, _ in rows], np.array(vectors, np.float32).reshape(-1, len(query))

    def purge(self) -> None:
        """Rewrite the tables without dead rows and let the write-ahead log turn over."""
        tables = ["documents", "journal", "sightings"]
        with self._lock:
            try:
                connection = self._connected()
                for name in [*tables, *(f"embeddings_{g}" for g in self.generations())]:
                    connection.execute(sql.SQL("VACUUM FULL {}").format(sql.Identifier(name)))
            except psycopg.Error as error:
                raise self._explained(error) from error

    def traces(self, needles: Sequence[bytes]) -> list[str]:
        """Search every binary and text value of the tables."""
        places = [("documents", "content"), ("sightings", "image"), ("sightings", "feature")]
        found = []
        with self._transaction() as c:
            for table, column in places:
                form = sql.SQL("SELECT 1 FROM {} WHERE position(%s::bytea IN {}) > 0 LIMIT 1")
                query = form.format(sql.Identifier(table), sql.Identifier(column))
                if any(c.execute(query, (needle,)).fetchone() for needle in needles):
                    found.append(f"{table}.{column}")
        return found

    def verify(self, generations: Collection[int] | None = None) -> list[str]:
        """Read every value of every table."""
        damaged = []
        used = self.generations() if generations is None else generations
        names = [
            "documents",
            "journal",
            "sightings",
            *(f"embeddings_{g}" for g in used),
        ]
        for name in names:
            try:
                with self._transaction() as c, c.cursor("verify") as cursor:
                    cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
                    while cursor.fetchmany(100):
                        pass
            except StoreError as error:
                damaged.append(f"table {name}: {error}")
        return damaged

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


def _about(statement: str, generation: int) -> sql.Composed:
    """Put the name of a table of embeddings into a statement."""
    return sql.SQL(statement).format(sql.Identifier(f"embeddings_{generation}"))  # type: ignore[arg-type]


def _lists(table: Table) -> list[list[Any]]:
    times = [None if np.isnan(time) else float(time) for time in table.times]
    texts = [a.tolist() for a in (table.ids, table.persons, table.cameras)]
    return [*texts, times, table.sequences.tolist(), table.sources.tolist(), table.added.tolist()]


def _insert_embeddings(
    connection: psycopg.Connection[Any], generation: int, table: Table, embeddings: Floats32
) -> None:
    ids, _, cameras, times, *_ = _lists(table)
    statement = "INSERT INTO {} VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
    rows = list(zip(ids, cameras, times, np.asarray(embeddings, np.float32), strict=True))
    connection.cursor().executemany(_about(statement, generation), rows)


def _condition(where: Filter) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    for text, value in (
        ("camera = ANY(%s)", list(where.cameras)),
        ("NOT camera = ANY(%s)", list(where.exclude_cameras)),
        ("time >= %s", where.after),
        ("time <= %s", where.before),
    ):
        if value is not None and value != []:
            parts.append(text)
            values.append(value)
    return ("WHERE " + " AND ".join(parts) if parts else ""), values


def _without_password(uri: str) -> str:
    return re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:***@", uri)
