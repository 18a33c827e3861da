"""Who may do what: hosts, log-in, sessions, forged requests, guesses, sizes, headers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from resight.gallery import Gallery, users
from resight.gallery.log import Actor, operator
from resight.gallery.spool import MAX_UPLOAD

MAX_BODY = 21 * 2**20  # an image of 20 MB and what a form puts around it
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TOO_LARGE = {
    MAX_BODY: f"uploads are limited to {MAX_BODY // 2**20 - 1} MB. Crop the person first",
    MAX_UPLOAD: f"what is added at once is limited to {MAX_UPLOAD >> 30} GB. Add it in parts, or "
    "on the server: resight gallery add",
}
_FREE_GUESSES, _LONGEST_WAIT, _REMEMBERED = 4, 300.0, 10_000

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass
class Limits:
    """What a server grants to clients, in counts and seconds."""

    header: float = 10.0  # to arrive; an idle connection is one that waits for a header
    body: float = 60.0  # likewise; each MB of what is added has this time
    answer: float = 60.0  # to compute an answer, and once more for the client to take it
    connections: int = 500  # above which the one is closed that waits longest for its request
    workers: int = 8  # requests computed at once, which bounds the memory; others wait
    ending: float = 8.0  # for a server that was told to end, whatever clients do


LIMITS = Limits()
LARGE = "/jobs/add"  # the route that takes bodies of any length within its own limit


class RefusedError(HTTPException):
    """A request that is not answered, with its status and words for the user."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    found = _address_of(host)
    return host == "localhost" or (found is not None and found.is_loopback)


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


class SlowDown:
    """Makes guessing slow: after some wrong ones each doubles the wait, by name and by address."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how often, until when

    def check(self, *keys: str) -> None:
        """Refuse while one of the keys has to wait."""
        until = max(self._wrong.get(key, (0, 0.0))[1] for key in keys)
        if until > time.monotonic():
            left = int(until - time.monotonic()) + 1
            raise RefusedError(429, f"too many wrong guesses; try again in {left} s")

    def wrong(self, *keys: str) -> None:
        """Count a wrong guess."""
        for key in keys:
            count = self._wrong.pop(key, (0, 0.0))[0] + 1
            wait = min(_LONGEST_WAIT, 2.0 ** (count - _FREE_GUESSES))
            self._wrong[key] = count, time.monotonic() + (wait if count >= _FREE_GUESSES else 0.0)
        while len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)

    def right(self, *keys: str) -> None:
        """Forget wrong guesses."""
        for key in keys:
            self._wrong.pop(key, None)


@dataclass
class Guard:
    """The rules of one server."""

    gallery: Gallery
    login: bool = True  # without, everybody who can connect is an administrator
    # By which the server may be addressed, so that a page on the web cannot reach in through a
    # name of its own (DNS rebinding).
    hosts: tuple[str, ...] = LOOPBACK
    any_address: bool = False  # also by numbers, as where it listens on all interfaces
    session_seconds: float = 3600.0
    # Told each new one-time key, with which whoever sees the terminal gets in.
    on_link: Callable[[str], None] | None = None
    _key: str = ""
    _slow: SlowDown = field(default_factory=SlowDown)
    _entering: threading.Lock = field(default_factory=threading.Lock)  # one guess at a time

    def __post_init__(self) -> None:
        place = hashlib.sha256(self.gallery.uri.encode()).hexdigest()[:8]
        self.session = f"resight_session_{place}"  # servers on one host do not log each other out
        self.form = f"resight_form_{place}"
        self.new_link()

    def new_link(self) -> None:
        """Make another one-time key."""
        if self.on_link is not None:
            self._key = secrets.token_urlsafe(32)
            self.on_link(self._key)

    # ---- before anything is read

    def check_host(self, request: HTTPConnection) -> None:
        """Refuse requests that address this server by a foreign name."""
        name = (request.url.hostname or "").strip("[]")
        if name not in self.hosts and not (self.any_address and _address_of(name)):
            raise RefusedError(
                421, f"unknown host {name!r}; use the address that was printed, or --allow-host"
            )

    def check_size(self, request: HTTPConnection) -> None:
        """Refuse bodies that are too large, or do not say how large, before they are read."""
        declared = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not declared.isdigit():
            raise RefusedError(411, "the request has no Content-Length header")
        most = MAX_UPLOAD if request.url.path == LARGE else MAX_BODY
        if int(declared) > most:
            raise RefusedError(413, f"too large: {_TOO_LARGE[most]}")

    # ---- who it is

    def identify(self, request: HTTPConnection) -> tuple[Actor, str]:
        """Find out who sent a request, with which role, refusing those who are not logged in."""
        address = _address(request)
        purpose = request.headers.get("resight-purpose", "")[:500]
        if not self.login:
            return Actor("anybody", "no login", address, purpose), "administrator"
        token = bearer(request)
        if token:
            self._slow.check(address)
        secret = token or request.cookies.get(self.session, "")
        found = users.find(self.gallery.engine, secret, self.session_seconds) if secret else None
        if found is None:
            if token:
                self._slow.wrong(address)
                self.gallery.record(Actor("unknown", "token", address), "token refused")
            raise RefusedError(401, "log in first; a program sends the header Authorization")
        purpose = purpose if token else found.purpose
        return Actor(found.name, found.kind, address, purpose), found.role

    def enter(
        self, request: HTTPConnection, name: str, password: str, key: str, purpose: str
    ) -> str:
        """Log in by password or by the terminal's key; return the secret of the session."""
        address = _address(request)
        guessed = (address, f"user {name}" if name else "key")
        with self._entering:
            self._slow.check(*guessed)
            found = self._entered(name, password, key)
            known = found or name in {user.name for user in users.all_users(self.gallery.engine)}
            who = (found[0] if found else name) if known else "unknown"  # may be a mistyped secret
            actor = Actor(who, "page", address, purpose)
            self.gallery.record(actor, "login" if found else "login failed")
            if found is None:
                self._slow.wrong(*guessed)
                raise RefusedError(401, "wrong name or password" if name else "wrong key")
            self._slow.right(*guessed)
        return users.issue(self.gallery.engine, *found, purpose, self.session_seconds)

    def _entered(self, name: str, password: str, key: str) -> tuple[str, str, str] | None:
        if name:
            user = users.check_password(self.gallery.engine, name, password)
            return (user.name, user.role, "page") if user else None
        if self._key and hmac.compare_digest(self._key.encode(), key.strip().encode()):
            self.new_link()  # this one was used
            return operator().who, "administrator", "link"
        return None

    # ---- forged requests

    def csrf(self, request: HTTPConnection) -> str:
        """Return the word that forms of this visitor carry."""
        outside = not self.login or request.url.path == "/login"
        secret = request.state.form if outside else request.cookies.get(self.session, "")
        return hmac.new(secret.encode(), b"form", hashlib.sha256).hexdigest() if secret else ""

    def check_change(self, request: HTTPConnection, given: str) -> None:
        """Refuse changes that another site may have sent in the user's name."""
        if bearer(request) and self.login:
            return  # no browser adds this header by itself, and `identify` has checked it
        word, given = self.csrf(request), given or request.headers.get("x-csrf", "")
        if not word or not hmac.compare_digest(word.encode(), given.encode()):
            raise RefusedError(
                403, "this form has expired or came from another site; reload the page"
            )


def bearer(request: HTTPConnection) -> str:
    """Return the token that a program sends."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


def _address(request: HTTPConnection) -> str:
    return request.client.host if request.client else "unknown"
