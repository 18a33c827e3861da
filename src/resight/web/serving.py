"""Starting the server: address, tokens, browser."""

from __future__ import annotations

import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn

from resight.errors import InputError
from resight.gallery import Gallery
from resight.web.app import make_app
from resight.web.security import Guard, is_loopback

_MIN_SECRET = 12


def run(
    gallery: Gallery,
    host: str,
    port: int,
    tokens: Sequence[str],
    *,
    open_browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve until interrupted; tells the address once it answers."""
    loopback = is_loopback(host)
    known = parse_tokens(tokens)
    if not loopback and not known:
        known = {secrets.token_urlsafe(18): "guest"}
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    if known:
        address += f"?token={next(iter(known))}"
    app = make_app(gallery, Guard(known, loopback))
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    server = uvicorn.Server(config)
    threading.Thread(
        target=_announce, args=(server, address, open_browser, tell), daemon=True
    ).start()
    server.run(sockets=[listener])


def parse_tokens(tokens: Sequence[str]) -> dict[str, str]:
    """Read ``NAME:SECRET`` or ``SECRET``; short secrets are refused."""
    known = {}
    for text in tokens:
        name, separator, secret = text.rpartition(":")
        if len(secret) < _MIN_SECRET:
            raise InputError(
                f"a token needs at least {_MIN_SECRET} characters, this one has {len(secret)}; "
                f"for example {secrets.token_urlsafe(18)}"
            )
        known[secret] = name if separator and name else "guest"
    return known


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError) as error:  # UnicodeError: no name of a host
        raise InputError(f"cannot listen on {host!r}: unknown address") from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port (0: any)"
        ) from error
    return listener


def _announce(server: Any, address: str, open_browser: bool, tell: Callable[[str], None]) -> None:
    while not server.started and not server.should_exit:
        time.sleep(0.02)
    if server.started:
        tell(f"serving the gallery at {address} (press Ctrl+C to stop)")
        if open_browser:
            webbrowser.open(address)
