"""PostgreSQL with pgvector: a gallery for many users at once.

All tables live in one schema, named by the part of the URI after ``#`` (default ``resight``).
Changes of all clients happen one after the other: each begins by locking the row that counts them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import BLOBS, LAYOUT, LEDGER, TABLES, Engine
from resight.gallery.engines.rows import Floats32
from resight.gallery.engines.scanning import scanned
from resight.gallery.filters import Filter

# Values are stored as they are, so that a search for erased bytes finds them, and the planner keeps
# no list of the most frequent names, which erasing would not reach.
_PLAIN = """
ALTER TABLE documents ALTER content SET STORAGE EXTERNAL;
ALTER TABLE images ALTER content SET STORAGE EXTERNAL;
ALTER TABLE features ALTER content SET STORAGE EXTERNAL;
ALTER TABLE journal ALTER content SET STORAGE EXTERNAL, ALTER content SET STATISTICS 0,
    ALTER key SET STATISTICS 0;
ALTER TABLE sightings ALTER person SET STATISTICS 0, ALTER id SET STATISTICS 0,
    ALTER source SET STATISTICS 0;
ALTER TABLE images ALTER id SET STATISTICS 0;
ALTER TABLE features ALTER id SET STATISTICS 0;
CREATE TABLE layout (number int NOT NULL);
INSERT INTO layout VALUES (2);
"""
_TO_3 = f"""
ALTER TABLE log ALTER act SET STORAGE EXTERNAL, ALTER subjects SET STORAGE EXTERNAL,
    ALTER act SET STATISTICS 0, ALTER subjects SET STATISTICS 0;
UPDATE layout SET number = {LAYOUT};
"""
# From the tables of 0.1, which had images and descriptors beside what is known of a sighting.
_FROM_1 = f"""{BLOBS}
INSERT INTO images SELECT id, image FROM sightings;
INSERT INTO features SELECT id, feature FROM sightings;
ALTER TABLE sightings DROP COLUMN image, DROP COLUMN feature;
{_PLAIN}"""
_WIDEST = 16_000  # numbers of an embedding that pgvector can hold; wider ones are plain bytes
_LIMITS = (
    "Not reached by this: write-ahead log segments, archives and replicas of the PostgreSQL "
    "server. Its administrator removes the log by: ALTER SYSTEM SET wal_recycle = off; SELECT "
    "pg_reload_conf(); CHECKPOINT; SELECT pg_switch_wal(); CHECKPOINT; and deletes archived "
    "segments and base backups from before; replicas follow by themselves"
)


class PostgresEngine(Engine):
    """A gallery as tables of one schema of a PostgreSQL database."""

    approximate = True
    erasing_limits = _LIMITS
    _mark = "%s"
    _in = "= ANY(?)"
    _row = "id"
    _length = "pg_column_size"
    _embed = "INSERT INTO {} SELECT id, camera, time, ? FROM sightings WHERE id = ?"
    _vector = "id text PRIMARY KEY, camera text NOT NULL, time float8, vector {type} NOT NULL"
    _begin = ("BEGIN", "SELECT number FROM changes FOR UPDATE")
    _begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _errors = (psycopg.Error,)

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self._address, _, name = uri.partition("#")
        if name and not re.fullmatch(r"[a-z][a-z0-9_]{0,50}", name):
            raise InputError(
                f"gallery name {name!r} after '#': use a letter, then letters, digits or '_' "
                "(lower case)"
            )
        self._schema = name or "resight"

    # ---- the connection

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            connection = psycopg.connect(self._address, autocommit=True, connect_timeout=10)
            weakref.finalize(self, connection.close)  # galleries need not be closed by hand
            schema = sql.Identifier(self._schema)
            connection.execute(sql.SQL("SET search_path TO {}, public").format(schema))
            connection.execute(f"SET lock_timeout = '{self.wait:g}s'")
            if connection.execute("SELECT to_regtype('vector')").fetchone() != (None,):
                register_vector(connection)
            self._connection = connection
            self._check_layout(connection)
        return self._connection

    def _has(self, connection: psycopg.Connection[Any], table: str) -> bool:
        query = "SELECT to_regclass(%s)"
        return connection.execute(query, (f"{self._schema}.{table}",)).fetchone() != (None,)

    def _check_layout(self, connection: psycopg.Connection[Any]) -> None:
        """Bring older tables into the layout of today; refuse those of a newer resight."""
        if not self._has(connection, "documents"):
            return
        for table, script in (("layout", _FROM_1), ("log", LEDGER + _TO_3)):
            if not self._has(connection, table):
                with connection.transaction():
                    connection.execute("SELECT number FROM changes FOR UPDATE")
                    if not self._has(connection, table):  # nobody else did it meanwhile
                        self._run_script(connection, script)
        [number] = connection.execute("SELECT number FROM layout").fetchone() or (0,)
        self._refuse_newer(number, LAYOUT)
        if number < LAYOUT:  # 5 has other answers, not other tables
            connection.execute(f"UPDATE layout SET number = {LAYOUT}")

    def _run_script(self, connection: psycopg.Connection[Any], script: str) -> None:
        serial = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        connection.execute(script.replace("BLOB", "bytea").replace("SERIAL", serial))  # type: ignore[arg-type]

    def _explained(self, error: Exception) -> StoreError:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        where = f"gallery {self.place}"
        if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected):
            return StoreError(
                f"{where}: waited {self.wait:g} s for another client that is changing it (adding, "
                "rebuilding, erasing, restoring; pg_stat_activity shows it). Nothing was changed; "
                "run the same command again once it is done"
            )
        if isinstance(error, psycopg.OperationalError):
            return StoreError(
                f"{where}: no connection to the database, or it was lost ({first}). Nothing of "
                "this step was stored, everything before it is safe; run the same command again "
                "once the server answers"
            )
        return StoreError(
            f"{where}: the database refused ({first}). `resight gallery check` lists what is wrong"
        )

    def exists(self) -> bool:
        """Whether the schema has our tables."""
        with self._explaining():
            return self._has(self._connected(), "documents")

    def create(self) -> None:
        """Make schema, extension and tables in one transaction.

        An extension or schema that an administrator made is used: a role with rights in its own
        schema alone can make a gallery there.
        """
        if self.exists():
            return
        with self._explaining():
            connection = self._connected()
            with connection.transaction():
                if connection.execute("SELECT to_regtype('vector')").fetchone() == (None,):
                    connection.execute("CREATE EXTENSION vector SCHEMA public")
                schema = connection.execute("SELECT to_regnamespace(%s)", (self._schema,))
                if schema.fetchone() == (None,):
                    made = sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema))
                    connection.execute(made)
                self._run_script(connection, TABLES + _PLAIN + _TO_3)
            self.close()  # the next connection knows the vector type

    # ---- the dialect

    def _list(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def _tables(self) -> list[str]:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
        return [name for (name,) in self._ask(query, self._schema)]

    def _vector_type(self, width: int) -> str:
        return f"vector({width})" if width <= _WIDEST else "bytea"

    def _to_vectors(self, embeddings: Floats32) -> Iterable[Any]:
        rows = np.ascontiguousarray(embeddings, "<f4")
        return iter(rows) if rows.shape[1] <= _WIDEST else (row.tobytes() for row in rows)

    def _from_vectors(self, stored: Sequence[Any], width: int) -> Floats32:
        if width > _WIDEST:
            return np.frombuffer(b"".join(stored), "<f4").reshape(-1, width)
        vectors = [vector.to_numpy() for vector in stored]
        return np.array(vectors, np.float32).reshape(-1, width)

    def build_index(self, generation: int) -> None:
        """Build pgvector's HNSW index and an index for the filters; others go on meanwhile."""
        with self._explaining(), self._connected().transaction():
            self._ask("SET LOCAL maintenance_work_mem = '1GB'")
            self._ask(f"CREATE INDEX ON embeddings_{generation} USING hnsw (vector vector_l2_ops)")
            self._ask(f"CREATE INDEX ON embeddings_{generation} (camera, time)")

    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
        """Search by scan or by index; the index goes on until the filter has let k through."""
        if len(query) > _WIDEST:
            return super().nearest(generation, query, k, where, exact=True)
        allowed, values = self._condition(where)
        conditions = f"WHERE {' AND '.join(allowed)}" if allowed else ""
        search = f"SELECT id, vector FROM embeddings_{generation} s {conditions}"
        search += " ORDER BY vector <-> ? LIMIT ?"
        with self._explaining(), self._connected().transaction():
            if exact:
                self._ask("SET LOCAL enable_indexscan = off")
            else:
                self._ask("SET LOCAL hnsw.iterative_scan = strict_order")
                self._ask(f"SET LOCAL hnsw.ef_search = {max(200, min(1000, 4 * int(k)))}")
            rows = self._ask(search, *values, query.astype(np.float32), int(k))
        return [key for key, _ in rows], self._from_vectors([v for _, v in rows], len(query))

    # ---- care

    def purge(
        self, needles: Sequence[bytes], *, rewrite: bool = False, only: Sequence[str] | None = None
    ) -> dict[str, set[bytes]]:
        """Write all tables anew, without dead rows, and search them."""
        for name in only or self._tables():
            self._ask(f"VACUUM FULL {name}")
        return self.traces(needles)

    def traces(self, needles: Sequence[bytes]) -> dict[str, set[bytes]]:
        """Search every value of every table, uncompressed."""
        with self._explaining():
            return scanned(((name, self._dumped(name)) for name in self._tables()), needles)

    def _dumped(self, table: str) -> Iterator[bytes]:
        statement = sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(sql.Identifier(table))
        with self._connected().cursor().copy(statement) as blocks:
            for block in blocks:
                yield bytes(block)

    def verify(self) -> list[str]:
        """Read every value of every table."""
        damaged = []
        for name in self._tables():
            try:
                with self._explaining():
                    for _ in self._dumped(name):
                        pass
            except StoreError as error:
                damaged.append(f"table {name}: {error}")
        return damaged

    @contextmanager
    def claimed(self, what: str) -> Iterator[None]:
        """Hold an advisory lock on a connection of its own; it ends with the process."""
        with self._explaining():
            lock = psycopg.connect(self._address, autocommit=True, connect_timeout=10)
        with lock:
            query = "SELECT pg_try_advisory_lock(hashtext(%s))"
            if lock.execute(query, (f"resight {self._schema} {what}",)).fetchone() != (True,):
                raise StoreError(
                    f"gallery {self.place}: another process is doing the same ({what}); wait for it"
                )
            yield
