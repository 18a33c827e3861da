"""What both engines share beside sightings: transactions, documents, journals, the log, users."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from resight.errors import StoreError

WAIT = 60.0  # seconds that a change waits for other processes
_PAGE = 5000  # rows of the log read at once


class LogRow(NamedTuple):
    """One entry as it is stored; see `resight.gallery.log`."""

    number: int
    hash: str
    commitment: str
    salt: str | None
    act: str | None
    subject_salt: str | None
    subjects: str | None


class User(NamedTuple):
    """Somebody who may log in; the password is hashed."""

    name: str
    role: str
    password: str


class Credential(NamedTuple):
    """A session or a program's token; `ends` is None where it does not expire."""

    digest: str
    name: str
    role: str
    kind: str
    purpose: str
    begun: float
    ends: float | None


class Database(ABC):
    """Documents, journals, the log and users in SQL; every change is one transaction."""

    uri: str

    # What the two dialects do not share.
    _mark = "?"
    _in = "IN (SELECT value FROM json_each(?))"
    _begin: tuple[str, ...] = ("BEGIN IMMEDIATE",)
    _begin_reading = "BEGIN"
    _errors: tuple[type[Exception], ...] = ()

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.place = re.sub(r"(//[^:/@]*):[^@/]*@", r"\1:***@", uri)  # what may be shown of it
        self.wait = WAIT
        self._lock = threading.RLock()
        self._depth = 0
        self._connection: Any = None

    @abstractmethod
    def _connected(self) -> Any:
        """Return a live connection of the newest layout."""

    @abstractmethod
    def _explained(self, error: Exception) -> StoreError:
        """Say in words what the driver raised."""

    @abstractmethod
    def _list(self, values: Sequence[str]) -> Any:
        """Pass a list of texts to a statement."""

    @abstractmethod
    def _tables(self) -> list[str]:
        """List the tables of this gallery."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether our tables are here; nothing is created by looking."""

    @abstractmethod
    def create(self) -> None:
        """Make the empty tables, unless they are here."""

    def _refuse_newer(self, layout: int, known: int) -> None:
        if layout > known:
            raise StoreError(
                f"gallery {self.place} has layout {layout}; this resight reads up to {known}. "
                "Update resight: pip install --upgrade resight"
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
        """Make everything inside one change, or (`reading`) look at one state of the gallery.

        Inside another transaction it belongs to that one.
        """
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
                self._rollback(connection)
                raise
            finally:
                self._depth = 0

    def _rollback(self, connection: Any) -> None:
        """Undo a transaction; a connection that is lost, or a full disk, has undone it already."""
        with suppress(*self._errors):
            connection.execute("ROLLBACK")

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        with self._explaining():
            cursor = self._connected().execute(statement.replace("?", self._mark), values)
            return list(cursor.fetchall()) if cursor.description else []

    def _many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._explaining():
            cursor = self._connected().cursor()
            cursor.executemany(statement.replace("?", self._mark), list(rows))

    @contextmanager
    def _change(self) -> Iterator[None]:
        with self.transaction():
            yield
            self._ask("UPDATE changes SET number = number + 1")

    def version(self) -> tuple[object, object]:
        """Return tokens that differ after any change: of all but the labels, and of the labels."""
        last = "SELECT max(number) FROM journal WHERE name = 'labels'"
        [(changes, label)] = self._ask(f"SELECT number, ({last}) FROM changes")
        return changes, label

    # Documents: named bytes, replaced as a whole.
    def get(self, name: str) -> bytes | None:
        """Read a document, None if there is none of that name."""
        found = self._ask("SELECT content FROM documents WHERE name = ?", name)
        return bytes(found[0][0]) if found else None

    def large(self, name: str) -> bytes | memoryview:
        """Read a document that may be large, such as a model's arrays; empty if there is none."""
        return self.get(name) or b""

    def put(self, documents: dict[str, bytes], *, searched: bool = True) -> None:
        """Write documents; nobody reads the gallery again for those that no search looks at."""
        statement = "INSERT INTO documents VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        with self._change() if searched else self.transaction():
            self._many(statement + "SET content = excluded.content", documents.items())

    def names(self, prefix: str) -> list[str]:
        """List documents whose name begins with `prefix`, sorted."""
        found = (name for (name,) in self._ask("SELECT name FROM documents"))
        return sorted(name for name in found if name.startswith(prefix))

    def drop(self, names: Sequence[str], *, searched: bool = True) -> None:
        """Remove documents."""
        with self._change() if searched else self.transaction():
            self._ask(f"DELETE FROM documents WHERE name {self._in}", self._list(names))

    # Journals: texts with a key, in the order in which they were written.
    def append(self, journal: str, key: str, text: str) -> None:
        """Write one entry; durable on return."""
        with self.transaction():
            self._ask(
                "INSERT INTO journal (name, key, content) VALUES (?, ?, ?)", journal, key, text
            )

    def read(self, journal: str, last: int | None = None) -> list[tuple[str, str]]:
        """Return all entries as (key, text), or the `last` few, oldest first."""
        query = "SELECT key, content FROM journal WHERE name = ? ORDER BY number DESC"
        query += "" if last is None else f" LIMIT {int(last)}"
        return [(key, text) for key, text in self._ask(query, journal)][::-1]

    def strike(self, journal: str, keys: Sequence[str]) -> None:
        """Remove entries."""
        statement = f"DELETE FROM journal WHERE name = ? AND key {self._in}"
        with self._change():
            self._ask(statement, journal, self._list(keys))

    def amend(self, journal: str, texts: dict[str, str]) -> None:
        """Replace the texts of entries, by their keys; they keep their places."""
        statement = "UPDATE journal SET content = ? WHERE name = ? AND key = ?"
        with self._change():
            self._many(statement, [(text, journal, key) for key, text in texts.items()])

    # The log, users and credentials: no part of what a search looks at.
    def log_head(self) -> tuple[int, str]:
        """Return number and hash of the last entry, (0, "") before the first."""
        found = self._ask("SELECT number, hash FROM log ORDER BY number DESC LIMIT 1")
        return (int(found[0][0]), str(found[0][1])) if found else (0, "")

    def log_append(self, rows: Sequence[LogRow]) -> None:
        """Write entries; durable on return, unless inside a transaction."""
        with self.transaction():
            self._many("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def log_rows(self, first: int = 1) -> Iterator[LogRow]:
        """Yield entries from a number on, in order."""
        while True:
            query = f"SELECT * FROM log WHERE number >= ? ORDER BY number LIMIT {_PAGE}"
            rows = [LogRow(*row) for row in self._ask(query, first)]
            yield from rows
            if len(rows) < _PAGE:
                return
            first = rows[-1].number + 1

    def log_empty(self, subjects: Sequence[int], acts: Sequence[int]) -> None:
        """Remove values and salts of entries: whom they concern, or also what was done."""
        some = "UPDATE log SET subject_salt = NULL, subjects = NULL{} WHERE number = ?"
        with self.transaction():
            self._many(some.format(""), [(number,) for number in subjects])
            self._many(some.format(", salt = NULL, act = NULL"), [(number,) for number in acts])

    def users(self) -> list[User]:
        """List users by name."""
        return [User(*row) for row in self._ask("SELECT * FROM users ORDER BY name")]

    def put_user(self, user: User) -> None:
        """Add a user or replace one; sessions end, tokens get the new role."""
        with self.transaction():
            self._ask("DELETE FROM users WHERE name = ?", user.name)
            self._ask("INSERT INTO users VALUES (?, ?, ?)", *user)
            self._ask("DELETE FROM credentials WHERE name = ? AND kind <> 'token'", user.name)
            self._ask("UPDATE credentials SET role = ? WHERE name = ?", user.role, user.name)

    def drop_user(self, name: str) -> None:
        """Remove a user with all credentials."""
        with self.transaction():
            self._ask("DELETE FROM users WHERE name = ?", name)
            self._ask("DELETE FROM credentials WHERE name = ?", name)

    def put_credential(self, credential: Credential) -> None:
        """Write a credential, replacing the one of the same digest."""
        with self.transaction():
            self.drop_credential(credential.digest)
            self._ask("INSERT INTO credentials VALUES (?, ?, ?, ?, ?, ?, ?)", *credential)

    def credential(self, digest: str) -> Credential | None:
        """Find a credential, also an expired one."""
        found = self._ask("SELECT * FROM credentials WHERE digest = ?", digest)
        return Credential(*found[0]) if found else None

    def drop_credential(self, digest: str = "", expired: float = 0.0) -> None:
        """Remove one credential, and those that expired before a moment."""
        with self.transaction():
            self._ask("DELETE FROM credentials WHERE digest = ? OR ends < ?", digest, expired)

    def drop_purposes(self) -> None:
        """End sessions that state a purpose: it may name somebody who is erased."""
        with self.transaction():
            self._ask("DELETE FROM credentials WHERE purpose <> ''")
