"""What can go wrong before the page is there; the page itself is tested in tests/web."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.models.model import Model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    drawn = draw_cameras(folder / "cameras", n_people=6, n_cameras=2, seed=2)
    model = Model(("whos-star",), KXQDA())
    model.fit(model.describe(drawn.files()), drawn.persons, drawn.cameras)
    Gallery.create(folder / "gallery", model).add(drawn)
    return folder / "gallery"


def test_no_gallery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "none")]) == 1
    assert "no gallery at" in capsys.readouterr().err


def test_port_in_use(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["serve", str(place), "--port", port, "--no-browser"]) == 1
    assert "choose another --port" in capsys.readouterr().err


def test_a_certificate_that_is_none(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    words = ["serve", str(place), "--no-browser"]
    assert main([*words, "--certfile", str(tmp_path / "c.pem")]) == 1
    assert "are no certificate with its key" in capsys.readouterr().err
    assert main([*words, "--keyfile", str(tmp_path / "c.pem")]) == 1
    assert "--keyfile needs --certfile" in capsys.readouterr().err


def test_a_purpose_needs_a_login(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gallery = Gallery.open(place)
    gallery.require(asks_purpose=True)
    assert main(["serve", str(place), "--no-login", "--no-browser"]) == 1
    assert "stated on logging in" in capsys.readouterr().err
    gallery.require(asks_purpose=False)
    gallery.close()


def test_nothing_secret_is_in_a_process_list(place: Path, tmp_path: Path) -> None:
    """Bound to all addresses, with --quiet: the way in is told, and the browser gets no key."""
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/opened.part\n'
                      f'cp "${{1#file://}}" {tmp_path}/door.html\n'
                      f'mv {tmp_path}/opened.part {tmp_path}/opened\n')  # fmt: skip
    script.chmod(0o755)
    command = [sys.executable, "-m", "resight", "serve", str(place), "--host", "0.0.0.0", "-q"]
    surroundings = {**os.environ, "BROWSER": f"{script} %s"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=surroundings)
    try:
        assert process.stderr is not None
        lines = iter(process.stderr)
        port = next(filter(None, (re.search(r":(\d+)/ ", line) for line in lines)))[1]
        key = next(filter(None, (re.search(r"/login#key=(\S+)", line) for line in lines)))[1]
        assert any("NOT ENCRYPTED" in line for line in lines)
        base = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{base}/info.json").status_code == 401
        while not (tmp_path / "opened").exists():
            time.sleep(0.02)
        assert key not in (tmp_path / "opened").read_text()
        assert key in (tmp_path / "door.html").read_text()
        assert key not in Path(f"/proc/{process.pid}/cmdline").read_text()
        with httpx.Client(base_url=base) as client:
            word = re.search(r'csrf" value="(\w+)"', client.get("/login").text)
            assert word is not None
            client.post("/login", data={"key": key, "csrf": word[1]})
            assert client.get("/info.json").json()["sightings"] == 12
        half_sent = socket.create_connection(("127.0.0.1", int(port)))
        half_sent.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        time.sleep(0.2)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert time.monotonic() - begin < 10  # it ends whatever clients do
        assert process.returncode == 0  # Ctrl+C is the way to end it
        assert "interrupted" not in process.stderr.read()
        half_sent.close()
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()
