"""Who may use a gallery's page: users with roles, their passwords, sessions and tokens.

Passwords are kept as scrypt hashes, sessions and tokens (256 random bits) as their SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import Literal, NamedTuple

from resight.errors import InputError, unknown_name
from resight.gallery.engines.base import Engine
from resight.gallery.log import digest

Role = Literal["viewer", "teacher", "administrator"]
# Each may do what those before it may.
ROLES: tuple[Role, ...] = ("viewer", "teacher", "administrator")
MIN_PASSWORD = 12
LONGEST_SESSION = 12 * 3600.0  # seconds after which one logs in again in any case
_COST = (2**14, 8, 5)  # scrypt's n, r and p: 16 MB and about a third of a second


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


def all_users(engine: Engine) -> list[User]:
    """List users by name."""
    return [User(*row) for row in engine.ask("SELECT * FROM users ORDER BY name")]


def put_user(engine: Engine, user: User) -> None:
    """Add a user or replace one; sessions end, tokens get the new role."""
    with engine.transaction():
        engine.ask("DELETE FROM users WHERE name = ?", user.name)
        engine.ask("INSERT INTO users VALUES (?, ?, ?)", *user)
        engine.ask("DELETE FROM credentials WHERE name = ? AND kind <> 'token'", user.name)
        engine.ask("UPDATE credentials SET role = ? WHERE name = ?", user.role, user.name)


def add_user(engine: Engine, name: str, role: str, password: str) -> None:
    """Add a user, or give one another role and password."""
    check_user(name, role)
    if not MIN_PASSWORD <= len(password) <= 1024:
        raise InputError(
            f"a password needs at least {MIN_PASSWORD} characters, this one has {len(password)}"
        )
    salt = secrets.token_bytes(16)
    hashed = "$".join(("scrypt", *map(str, _COST), salt.hex(), _scrypt(password, salt, *_COST)))
    put_user(engine, User(name, role, hashed))


def check_user(name: str, role: str) -> None:
    """Refuse names that could be mistaken, and unknown roles."""
    if not re.fullmatch(r"[\w.@+-]{1,64}", name):
        raise InputError(f"user name {name!r}: use 1 to 64 letters, digits or . @ + - _")
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)


def remove_user(engine: Engine, name: str) -> None:
    """Remove a user; sessions and tokens end at once."""
    user_named(engine, name)
    with engine.transaction():
        engine.ask("DELETE FROM users WHERE name = ?", name)
        engine.ask("DELETE FROM credentials WHERE name = ?", name)


def user_named(engine: Engine, name: str) -> User:
    """Return a user, naming the others if there is none of that name."""
    users = {user.name: user for user in all_users(engine)}
    if name not in users:
        raise unknown_name("user", name, users)
    return users[name]


def check_password(engine: Engine, name: str, password: str) -> User | None:
    """Return the user if the password is right; as slow for names that nobody has."""
    user = next((user for user in all_users(engine) if user.name == name), None)
    _, n, r, p, salt, stored = (user.password if user else _NOBODY).split("$")
    given = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
    return user if hmac.compare_digest(given, stored) else None


def issue(
    engine: Engine, name: str, role: str, kind: str, purpose: str = "", seconds: float | None = None
) -> str:
    """Make a session or (without `seconds`) a token for a program; return its secret."""
    secret, now = secrets.token_urlsafe(32), time.time()
    ends = None if seconds is None else now + seconds
    made = Credential(digest(secret), name, role, kind, purpose, now, ends)
    with engine.transaction():
        engine.ask("DELETE FROM credentials WHERE ends < ?", now)
        engine.ask("INSERT INTO credentials VALUES (?, ?, ?, ?, ?, ?, ?)", *made)
    return secret


def find(engine: Engine, secret: str, seconds: float) -> Credential | None:
    """Return the credential of a secret unless it has expired; using a session prolongs it."""
    rows = engine.ask("SELECT * FROM credentials WHERE digest = ?", digest(secret))
    found, now = Credential(*rows[0]) if rows else None, time.time()
    if found is None or found.ends is None:
        return found
    if now > min(found.ends, found.begun + LONGEST_SESSION):
        return None
    if found.ends - now < seconds / 2:
        engine.ask("UPDATE credentials SET ends = ? WHERE digest = ?", now + seconds, found.digest)
    return found


def revoke(engine: Engine, secret: str) -> None:
    """End a session or token."""
    engine.ask("DELETE FROM credentials WHERE digest = ?", digest(secret))


def drop_purposes(engine: Engine) -> None:
    """End sessions that state a purpose: it may name somebody who is erased."""
    engine.ask("DELETE FROM credentials WHERE purpose <> ''")


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> str:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2**26).hex()


_NOBODY = "$".join(("scrypt", *map(str, _COST), "00" * 16, "no hash"))
