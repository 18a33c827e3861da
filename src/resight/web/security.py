"""Who may do what: hosts, tokens, forged requests, sizes, headers."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import HTTPConnection

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
            raise RefusedError(421, f"unknown host {name!r}; use the address that was printed")

    def check_size(self, request: HTTPConnection) -> None:
        """Refuse large bodies before they are read, and bodies that do not say how large they are.

        Browsers always say; the server holds them to what they said.
        """
        declared = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not declared.isdigit():
            raise RefusedError(411, "the request has no Content-Length header")
        if int(declared) > MAX_BODY:
            limit = MAX_BODY // 2**20 - 1
            raise RefusedError(
                413, f"too large: uploads are limited to {limit} MB. Crop the person first"
            )

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
                403, "this form has expired or came from another site; reload the page"
            )


def _bearer(request: HTTPConnection) -> str:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""
