"""Clients that are slow, many or never done, over real sockets; limits are short here."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from resight.gallery import Gallery
from resight.web.security import LIMITS
from resight.web.serving import listen

HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = (
    b"POST /upload" + HEAD + b"Content-Length: 1000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n"
)
PART = b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n'


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("header", "body", "answer"):
        monkeypatch.setattr(LIMITS, name, 0.6)


def connect(client: Any) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=10)


def closed_after(line: socket.socket, feed: Callable[[int], bytes]) -> float:
    """Send something every tenth of a second; return when the server hung up."""
    begin, turn = time.monotonic(), 0
    line.settimeout(0.1)
    while time.monotonic() - begin < 8:
        try:
            line.sendall(feed(turn))
            turn += 1
            if line.recv(65536) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    line.close()
    return time.monotonic() - begin


def test_answers_are_sent_without_delay() -> None:
    """Nagle's algorithm would hold the end of a page until its beginning is acknowledged."""
    listener = listen("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as line:
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("first", "then"),
    [(b"", b""), (b"GET /" + HEAD + b"X: ", b"x"), (POST, b""), (POST + PART, b"x")],
    ids=["silent", "endless header", "no body", "endless body"],
)
def test_a_slow_request_is_closed(short: None, client: Any, first: bytes, then: bytes) -> None:
    line = connect(client)
    line.sendall(first)
    assert closed_after(line, lambda turn: then) < 7
    assert client.get("/info.json").status_code == 200


def test_an_idle_connection_is_closed(short: None, client: Any) -> None:
    line = connect(client)
    line.sendall(b"GET /static/page.css" + HEAD + b"\r\n")
    assert line.recv(15) == b"HTTP/1.1 200 OK"
    assert closed_after(line, lambda turn: b"") < 7


def test_an_answer_that_nobody_takes_is_given_up(
    short: None, client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "image", lambda key: b"x" * 30_000_000)
    line = connect(client)
    address = f"GET /image/{gallery.view.table.ids[0]}"
    line.sendall(address.encode() + HEAD + b"\r\n")
    time.sleep(2.5)
    taken = 0
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(2**20):
            taken += len(part)
    assert taken < 30_000_000
    line.close()


def test_an_answer_that_takes_too_long_is_refused(
    short: None, client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "image", lambda key: time.sleep(1.5) or b"x")
    begin = time.monotonic()
    answer = client.get(f"/image/{gallery.view.table.ids[0]}")
    assert (answer.status_code, time.monotonic() - begin < 1.4) == (503, True)
    assert client.get("/info.json").status_code == 200


def test_half_open_connections_do_not_keep_others_out(client: Any) -> None:
    """More than may be open: those that have waited longest give way, and everybody is served."""
    resource = pytest.importorskip("resource", reason="the system has no limit to raise")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    lines = [connect(client) for _ in range(1015)]  # as many as stopped the service of 0.1
    with httpx.Client(base_url=client.base_url) as fresh:
        assert fresh.get("/info.json").status_code == 200
    lines[0].settimeout(2)
    with contextlib.suppress(ConnectionResetError):
        assert lines[0].recv(1) == b""
    for line in lines:
        line.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
