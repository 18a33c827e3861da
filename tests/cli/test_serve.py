"""What can go wrong before the page is there; the page itself is tested in tests/web."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.models.model import Model
from resight.web.serving import parse_tokens


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


def test_short_tokens(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(place), "--token", "ann:1234", "--no-browser"]) == 1
    assert "at least 12 characters" in capsys.readouterr().err
    assert parse_tokens(["ann:0123456789ab", "0123456789abc"]) == {
        "0123456789ab": "ann",
        "0123456789abc": "guest",
    }


def test_beyond_this_machine_a_token_is_made(place: Path) -> None:
    """Bound to all addresses of this machine, asked over the loopback one."""
    command = [sys.executable, "-m", "resight", "serve", str(place), "--host", "0.0.0.0"]
    process = subprocess.Popen([*command, "--no-browser"], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = next(
            filter(None, (re.search(r":(\d+)/\?token=(\S+)", line) for line in process.stderr))
        )
        base = f"http://127.0.0.1:{found[1]}"
        assert httpx.get(base).status_code == 401
        bearer = {"Authorization": f"Bearer {found[2]}"}
        assert httpx.get(f"{base}/info.json", headers=bearer).json()["sightings"] == 12
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stderr.close()
