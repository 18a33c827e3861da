"""Second part of what both engines share: the rows of the log, users and their credentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resight.gallery.engines.documents import Documents

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


class Ledger(Documents):
    """The log, users and credentials; none of them is part of what a search looks at."""

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
