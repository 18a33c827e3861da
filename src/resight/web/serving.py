"""Starting the server: address, certificate, how to get in, browser, and ending in time."""

from __future__ import annotations

import asyncio
import gc
import html
import os
import re
import socket
import ssl
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import h11
import uvicorn
from anyio import to_thread
from uvicorn.protocols.http.h11_impl import H11Protocol

from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.index import warm_up
from resight.gallery.jobs import Worker
from resight.gallery.users import all_users
from resight.validation import check_file, check_number
from resight.web.app import make_app
from resight.web.security import LARGE, LIMITS, LOOPBACK, Guard, is_loopback

_NO_LOGIN = (
    "NO LOG-IN: every user and program that reaches this address can see and change everything, "
    "and the log cannot say who it was"
)
_PLAIN = (
    "NOT ENCRYPTED: passwords and images can be read on the way. Give --certfile and --keyfile, or "
    "serve on this machine only behind a proxy that has a certificate (--behind-proxy)"
)

_PHASES = {h11.IDLE: "header", h11.SEND_BODY: "body"}  # by what the client has to do next


@dataclass(frozen=True)
class Settings:
    """What `resight serve` is told; see its options."""

    host: str = "127.0.0.1"
    port: int = 0
    login: bool = True
    session_minutes: float = 60.0
    certfile: Path | None = None
    keyfile: Path | None = None
    allow_host: Sequence[str] = ()
    behind_proxy: str | None = None
    open_browser: bool = False
    spool: Path | None = None


def run(gallery: Gallery, settings: Settings, tell: Callable[[str], None]) -> None:
    """Serve until interrupted; tells the address and how to get in once it answers."""
    _check(settings)
    # Looking for garbage among modules, and in the thousands of objects of a page, slows searches.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    if not settings.login and gallery.view.manifest.asks_purpose:
        raise InputError("this gallery asks for a purpose, which is stated on logging in")
    listener = listen(settings.host, settings.port)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.certfile is None else "https"
    address = f"{scheme}://{host}:{listener.getsockname()[1]}/"
    keys: list[str] = []

    def on_link(key: str) -> None:
        keys.append(key)
        if len(keys) > 1:
            tell(f"that link was used; the next one: {address}login#key={key}")

    linked = settings.login and not all_users(gallery.engine)
    hosts = (*LOOPBACK, settings.host, *settings.allow_host)
    everywhere = settings.host in ("0.0.0.0", "::")
    seconds, told = 60.0 * settings.session_minutes, on_link if linked else None
    guard = Guard(gallery, settings.login, hosts, everywhere, seconds, told)
    app = make_app(gallery, guard, settings.spool)
    worker = Worker(app.state.site.jobs)
    words = [f"serving the gallery at {address} (press Ctrl+C to stop)"]
    door = f"{address}login#key={keys[0]}" if linked else address
    if linked:
        more = f"resight gallery users {gallery.engine.place} --add NAME"
        words += [f"to get in, once: {door}", f"for more people: {more}"]
    words += [] if settings.login else [_NO_LOGIN]
    hidden = is_loopback(settings.host) or settings.behind_proxy or settings.certfile
    words += [] if hidden else [_PLAIN]
    with tempfile.TemporaryDirectory(prefix="resight-") as folder:

        def announce() -> None:
            tell("\n".join(words))
            if settings.open_browser:
                # A page that leads in: on a browser's command line everybody could read the key.
                page = Path(folder) / "open.html"
                page.touch(mode=0o600)
                page.write_text(f'<meta http-equiv="refresh" content="0; url={html.escape(door)}">')
                webbrowser.open(page.as_uri())
            warm_up()

        server = _Server(server_config(app, settings), announce)
        worker.start()
        with suppress(KeyboardInterrupt):  # uvicorn ends in order, and then raises it once more
            server.run(sockets=[listener])
        worker.end()


class _Server(uvicorn.Server):
    """Ends in time, whatever threads and clients still do: all that is stored is stored."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bound how many requests are computed at once, and the time to shake hands."""
        to_thread.current_default_thread_limiter().total_tokens = LIMITS.workers
        if self.config.is_ssl:
            loop: Any = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=LIMITS.header)
        await super().startup(sockets)
        if self.started:
            threading.Thread(target=self._announce, daemon=True).start()  # a browser may block

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End, gracefully or at last without asking."""
        timer = threading.Timer(LIMITS.ending, os._exit, (128 + sig,))
        timer.daemon = True
        timer.start()
        super().handle_exit(sig, frame)


class TimedProtocol(H11Protocol):
    """Closes connections of clients that are too slow: uvicorn alone would wait for ever."""

    _phase, _since, _came = "", 0.0, 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: D102
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > LIMITS.connections:
            every: Any = self.connections  # all of this class
            waiting = [one for one in every if one._phase == "header"]
            min(waiting, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._came += len(data)
        adding = self._phase == "body" and (self.scope or {}).get("path") == LARGE
        if adding and self._came > 2**20:  # it comes, if slowly: the clock starts anew
            self._phase, self._came = "", 0
        self._watch()

    def on_response_complete(self) -> None:  # noqa: D102
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        """Start the clock anew when another part of a request or answer is waited for."""
        phase = _PHASES.get(self.conn.their_state, "answer")
        if phase != self._phase:
            self._phase, self._since = phase, time.monotonic()
            self._abort_after(2 * LIMITS.answer if phase == "answer" else getattr(LIMITS, phase))

    def _abort_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        """Hang up, unless the client is still taking an answer and has time left for it."""
        left = LIMITS.answer - (time.monotonic() - self._since)
        if self.transport.get_write_buffer_size() and left > 0:
            self._abort_after(left)
        else:
            self.transport.abort()


def server_config(app: Any, settings: Settings) -> uvicorn.Config:
    """Configure uvicorn."""
    # Forwarded headers are believed from the proxy that was named, and from nobody else.
    return uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_keep_alive=int(LIMITS.header),
        timeout_graceful_shutdown=3,
        ssl_certfile=settings.certfile,
        ssl_keyfile=settings.keyfile,
        proxy_headers=settings.behind_proxy is not None,
        forwarded_allow_ips=settings.behind_proxy or [],
    )


def _check(settings: Settings) -> None:
    """Refuse what cannot work before anything is opened."""
    check_number(settings.session_minutes, "--session", 1, 60 * 24)
    for name in settings.allow_host:
        if not re.fullmatch(r"[\w.:-]{1,253}", name):
            raise InputError(f"--allow-host {name!r}: give the name in the address, without port")
    proxy = settings.behind_proxy
    try:
        ip_network("127.0.0.1" if proxy is None else proxy)
    except ValueError as error:
        raise InputError(f"--behind-proxy {proxy!r}: give its address, as 10.0.0.2") from error
    if settings.keyfile is not None and settings.certfile is None:
        raise InputError("--keyfile needs --certfile, the certificate that belongs to the key")
    if settings.certfile is not None:
        for file in filter(None, (settings.certfile, settings.keyfile)):
            check_file(file, 2**20)
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(settings.certfile, settings.keyfile, password="")
        except (OSError, ValueError) as error:
            raise InputError(
                f"{settings.certfile} and {settings.keyfile or 'the key in it'} are no certificate "
                f"with its key, in PEM format and without a passphrase ({error})"
            ) from error


def listen(host: str, port: int) -> socket.socket:
    """Open the address; answers are sent without delay."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except (socket.gaierror, UnicodeError) as error:  # UnicodeError: no name of a host
        raise InputError(f"cannot listen on {host!r}: unknown address") from error
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port (0: any)"
        ) from error
    # asyncio does so for sockets of its own: without it the end of a page waits for an
    # acknowledgement of its beginning, 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
