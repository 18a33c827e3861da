"""PostgreSQL, first part: the connection, documents and journals."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from resight.errors import InputError, StoreError
from resight.gallery.engines._postgres_tables import TABLES, without_password
from resight.gallery.engines.base import Engine


class PostgresDocuments(Engine):
    """The connection to one schema of a database, its documents and its journals."""

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
        where = f"gallery {without_password(self.uri)}"
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
        with self._transaction() as c:
            return c.execute(
                "SELECT to_regclass(%s)", (f"{self._schema}.documents",)
            ).fetchone() != (None,)

    def create(self) -> None:
        """Make schema, extension and tables in one transaction.

        An extension or schema that an administrator made is used: a role with rights in its own
        schema alone can make a gallery there.
        """
        with self._transaction() as c:
            if c.execute("SELECT to_regtype('vector')").fetchone() == (None,):
                c.execute("CREATE EXTENSION vector SCHEMA public")
            if c.execute("SELECT to_regnamespace(%s)", (self._schema,)).fetchone() == (None,):
                c.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema)))
            c.execute(TABLES)
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

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
