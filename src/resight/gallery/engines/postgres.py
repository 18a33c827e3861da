"""PostgreSQL with pgvector: a gallery for many users at once.

All tables live in one schema, named by the part of the URI after ``#`` (default ``resight``).
Changes of all clients happen one after the other: each begins by locking the row that counts them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import ADDED, LAYOUT, TABLES, Engine, Floats32, Near, script
from resight.gallery.engines.scanning import Needles, Traces, scanned
from resight.gallery.filters import Filter
from resight.gallery.log import adopt

_LAYOUT = f"CREATE TABLE layout (number int NOT NULL); INSERT INTO layout VALUES ({LAYOUT});"
_PLAIN = script("postgres.sql") + _LAYOUT
_FROM_1 = ADDED + script("postgres_from_1.sql") + _PLAIN
_VECTOR = "SELECT to_regtype('vector')"
_WIDEST = 16_000  # numbers of an embedding that pgvector can hold; wider ones are plain bytes


class PostgresEngine(Engine):
    """A gallery as tables of one schema of a PostgreSQL database."""

    approximate = True
    erasing_limits = (
        "Not reached by this: write-ahead log segments, archives and replicas of the PostgreSQL "
        "server. Its administrator removes the log by: ALTER SYSTEM SET wal_recycle = off; SELECT "
        "pg_reload_conf(); CHECKPOINT; SELECT pg_switch_wal(); CHECKPOINT; and deletes archived "
        "segments and base backups from before; replicas follow by themselves"
    )
    _mark = "%s"
    _in = "= ANY(?)"
    _row = "id"
    _embed = "INSERT INTO {} SELECT id, camera, time, ? FROM sightings WHERE id = ?"
    _vector = "id text PRIMARY KEY, camera text NOT NULL, time float8, vector {} NOT NULL"
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

    def _open(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._address, autocommit=True, connect_timeout=10)
        weakref.finalize(self, connection.close)  # galleries need not be closed by hand
        connection.execute(f'SET search_path TO "{self._schema}", public')
        connection.execute(f"SET lock_timeout = '{self.wait:g}s'")
        if connection.execute(_VECTOR).fetchone() != (None,):
            register_vector(connection)
        return connection

    def _check_layout(self) -> None:
        if not self.exists():
            return
        if "layout" not in self._tables():
            with self.transaction():
                if "layout" not in self._tables():  # nobody else did it meanwhile
                    self._run_script(_FROM_1)
                    adopt(self, self.read("access"))
                    self.ask("DELETE FROM journal WHERE name = 'access'")
        [(number,)] = self.ask("SELECT number FROM layout")
        self._require_layout(number)

    def _run_script(self, script: str) -> None:
        serial = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        self._connected().execute(script.replace("BLOB", "bytea").replace("SERIAL", serial))

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

    def create(self) -> None:
        """Make schema, extension and tables in one transaction.

        An extension or schema that an administrator made is used: a role with rights in its own
        schema alone can make a gallery there.
        """
        with self._explaining():
            with self._connected().transaction():
                self.ask("SELECT pg_advisory_xact_lock(hashtext(?))", f"resight {self._schema}")
                if self.exists():
                    return
                if self.ask(_VECTOR) == [(None,)]:
                    self.ask("CREATE EXTENSION vector SCHEMA public")
                if self.ask("SELECT to_regnamespace(?)", self._schema) == [(None,)]:
                    self.ask(f'CREATE SCHEMA "{self._schema}"')
                self._run_script(TABLES + _PLAIN)
            self.close()  # the next connection knows the vector type

    def _list(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def _tables(self) -> list[str]:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
        return [name for (name,) in self.ask(query, self._schema)]

    def _vector_type(self, width: int) -> str:
        return f"vector({width})" if width <= _WIDEST else "bytea"

    def _to_vectors(self, embeddings: Floats32) -> Iterable[Any]:
        if embeddings.shape[1] > _WIDEST:
            return super()._to_vectors(embeddings)
        return iter(np.ascontiguousarray(embeddings, "<f4"))

    def _from_vectors(self, stored: Sequence[Any], width: int) -> Floats32:
        if width > _WIDEST:
            return super()._from_vectors(stored, width)
        return np.array([vector.to_numpy() for vector in stored], np.float32).reshape(-1, width)

    def build_index(self, generation: int) -> None:
        """Build pgvector's HNSW index and an index for the filters; others go on meanwhile."""
        with self._explaining(), self._connected().transaction():
            self.ask("SET LOCAL maintenance_work_mem = '1GB'")
            self.ask(f"CREATE INDEX ON embeddings_{generation} USING hnsw (vector vector_l2_ops)")
            self.ask(f"CREATE INDEX ON embeddings_{generation} (camera, time)")

    def nearest(self, generation: int, query: Floats32, k: int, where: Filter, exact: bool) -> Near:
        """Search by scan or by index; the index goes on until the filter has let k through."""
        if len(query) > _WIDEST:
            return super().nearest(generation, query, k, where, exact=True)
        allowed, values = self._condition(where)
        conditions = f"WHERE {' AND '.join(allowed)}" if allowed else ""
        search = f"SELECT id, vector FROM embeddings_{generation} s {conditions}"
        search += " ORDER BY vector <-> ? LIMIT ?"
        with self.transaction(reading=True):
            if exact:
                self.ask("SET LOCAL enable_indexscan = off")
            else:
                self.ask("SET LOCAL hnsw.iterative_scan = strict_order")
                self.ask(f"SET LOCAL hnsw.ef_search = {max(200, min(1000, 4 * int(k)))}")
            rows = self.ask(search, *values, query.astype(np.float32), int(k))
        return [key for key, _ in rows], self._from_vectors([v for _, v in rows], len(query))

    def purge(self, needles: Needles, rewrite: bool = False, only: Sequence[str] = ()) -> Traces:
        """Write all tables anew, without dead rows, and search them."""
        for name in only or self._tables():
            self.ask(f"VACUUM FULL {name}")
        return self.traces(needles)

    def traces(self, needles: Needles) -> Traces:
        """Search every value of every table, uncompressed."""
        with self._explaining():
            return scanned(((name, self._dumped(name)) for name in self._tables()), needles)

    def _dumped(self, table: str) -> Iterator[bytes]:
        with self._connected().cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)") as blocks:
            yield from map(bytes, blocks)

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
