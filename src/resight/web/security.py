"""Who may do what: hosts, tokens, forged requests, sizes, headers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 21 * 2**20  # an image of 20 MB and what a form puts around it
SESSION, TOKEN = "resight_session", "resight_token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RefusedError(Exception):
    """A request that is not answered, with its status and words for the user."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """The rules of one server.

    Attributes
    ----------
    tokens : dict
        Secret -> name of whoever has it; empty means that everybody who can connect may.
    loopback : bool
        Bound to this machine only; then names of other hosts are refused, so that a page on the
        web cannot reach in through a name of its own (DNS rebinding).
    """

    tokens: dict[str, str]
    loopback: bool
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def check_host(self, request: HTTPConnection) -> None:
        """Refuse requests that address this server by a foreign name."""
        name = (request.url.hostname or "").strip("[]")
        if self.loopback and name not in LOOPBACK:
            raise RefusedError(421, f"this server is not {name!r}; use the address it printed")

    def who(self, request: HTTPConnection) -> str:
        """Name the user, refusing those without a valid token."""
        address = request.client.host if request.client else "unknown"
        if not self.tokens:
            return address
        given = (
            _bearer(request) or request.query_params.get("token") or request.cookies.get(TOKEN, "")
        )
        for token, name in self.tokens.items():
            if hmac.compare_digest(token.encode(), given.encode()):
                return f"{name} ({address})"
        raise RefusedError(401, "a token is needed: open the address that `resight serve` printed")

    def csrf(self, session: str) -> str:
        """Make the word that forms of a session carry."""
        return hmac.new(self.secret, session.encode(), hashlib.sha256).hexdigest()

    def check_change(self, request: HTTPConnection, given: str) -> None:
        """Refuse changes that another site may have sent in the user's name."""
        if _bearer(request) and self.tokens:
            return  # no browser adds this header by itself, and `who` has checked it
        session = request.cookies.get(SESSION, "")
        if not session or not hmac.compare_digest(self.csrf(session).encode(), given.encode()):
            raise RefusedError(
                403, "this form is too old or came from elsewhere; load the page again"
            )


def _bearer(request: HTTPConnection) -> str:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


class LimitBody:
    """Refuse large request bodies before they are read, or as soon as they have grown too large."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its body counted."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > MAX_BODY:
            await _too_large(send)
            return
        seen, started = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise _TooLargeError
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, counted, noted)
        except _TooLargeError:
            if not started:
                await _too_large(send)


class _TooLargeError(Exception):
    pass


async def _too_large(send: Send) -> None:
    text = (
        f"too large: an upload may have {MAX_BODY // 2**20 - 1} MB. Cut the person out of it first"
    )
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
