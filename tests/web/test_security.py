from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from resight.gallery import Gallery
from resight.web.security import is_loopback

JSON = {"Accept": "application/json"}


def test_changes_need_the_word_of_the_session(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    a, b = demo.unlabelled_pairs(gallery)[0]
    form = {"kind": "same", "a": a, "b": b}
    foreign = httpx.get(f"{client.base_url}/info.json").json()["csrf"]  # of another form cookie
    for word in ("", "0" * 64, foreign):
        assert client.post("/teach", data={**form, "csrf": word}).status_code == 403
    for address in ("/undo", "/name", "/jobs/improve", "/refit/undo", "/jobs/rebuild"):
        answer = client.post(address, data={"a": a, "person": "x", "key": "x"})
        assert answer.status_code == 403, address
    assert gallery.view.labels.active == []
    assert client.post("/teach", data={**form, "csrf": csrf}).status_code == 303


def test_answers_lead_back_to_this_site_only(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    pairs = demo.unlabelled_pairs(gallery)
    evil = ("https://evil.example/", "//evil.example", "/\\evil.example")
    for (a, b), back in zip(pairs, evil, strict=False):
        form = {"kind": "same", "a": a, "b": b, "csrf": csrf, "back": back}
        assert client.post("/teach", data=form).headers["location"] == "/"


@pytest.mark.parametrize(
    "path",
    [
        "/image/..%2f..%2f..%2fetc%2fpasswd",
        "/image/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/../../../../../etc/passwd",
        "/upload/..%2f..%2fetc%2fpasswd",
    ],
)
def test_paths_cannot_leave_the_gallery(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_foreign_names_of_this_machine_are_refused(client: Any) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Host": "localhost:1234"}).status_code == 200


def test_headers(client: Any) -> None:
    answer = client.get("/")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_loopback() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.0.1", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.4", "example.org")))


# ---- uploads


def test_upload_searches_and_writes_no_file(
    client: Any, gallery: Gallery, demo: Any, csrf: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    watched = tmp_path / "watched"
    watched.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(watched))
    noise = np.random.default_rng(0).integers(0, 256, (1600, 800, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.png")
    assert (tmp_path / "large.png").stat().st_size > 3_000_000
    before = sorted(path for path in demo.folder.rglob("*") if path.suffix != ".sqlite-wal")
    for file in (demo.sightings.files()[7], tmp_path / "large.png"):
        answer = client.post(
            "/upload", files={"image": ("../../x.png", file.read_bytes())}, data={"csrf": csrf}
        )
        assert answer.status_code == 303
        page = client.get(answer.headers["location"])
        assert page.status_code == 200
        assert client.get(f"/upload/{answer.headers['location'].split('=')[1]}").status_code == 200
    assert list(watched.iterdir()) == []
    after = sorted(path for path in demo.folder.rglob("*") if path.suffix != ".sqlite-wal")
    assert before == after


def test_an_uploaded_crop_finds_its_sighting(
    client: Any, gallery: Gallery, demo: Any, csrf: str
) -> None:
    content = demo.sightings.files()[7].read_bytes()
    key = client.post("/upload", files={"image": content}, data={"csrf": csrf}, headers=JSON).json()
    answer = client.get(f"/search.json?upload={key['upload']}").json()
    [same] = answer["same_pictures"]
    assert gallery.image(same["id"]) == content
    assert same["distance"] < 1e-6 * answer["hits"][0]["distance"]
    assert same["id"] not in {hit["id"] for hit in answer["hits"]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello", "not an image"),
        (b"", "no image chosen"),
        ("wall", "a single colour"),
        ("tiny", "too small"),
    ],
)
def test_bad_uploads(
    client: Any, csrf: str, tmp_path: Path, content: bytes | str, words: str
) -> None:
    if isinstance(content, str):
        size = (64, 128) if content == "wall" else (8, 8)
        Image.new("RGB", size, "red").save(tmp_path / "x.png")
        content = (tmp_path / "x.png").read_bytes()
    answer = client.post("/upload", files={"image": content}, data={"csrf": csrf}, headers=JSON)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_an_upload_without_form_or_word(client: Any, csrf: str) -> None:
    assert client.post("/upload", content=b"x", headers=JSON).status_code == 422
    assert client.post("/upload", files={"image": b"x"}, headers=JSON).status_code == 403


def _raw(client: Any, head: str, chunk: bytes, times: int) -> tuple[bytes, int]:
    """Send bytes until the server has answered; return its answer and how many were taken."""
    taken = 0
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as line:
        line.sendall(head.encode())
        try:
            for _ in range(times):
                line.sendall(chunk)
                taken += len(chunk)
        except OSError:
            pass  # it has hung up
        try:
            return b"".join(iter(lambda: line.recv(65536), b"")), taken
        except OSError:
            return b"", taken


def test_a_gigabyte_is_refused_before_it_is_read(client: Any) -> None:
    head = "POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n"
    answer, _ = _raw(client, f"{head}Content-Length: 1000000000\r\n\r\n", b"", 0)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"20 MB" in answer
    megabyte = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
    answer, taken = _raw(client, f"{head}Transfer-Encoding: chunked\r\n\r\n", megabyte, 1000)
    assert taken < 100 * 2**20
    assert answer == b"" or answer.startswith(b"HTTP/1.1 411")
    assert client.get("/info.json").status_code == 200  # and the server goes on
