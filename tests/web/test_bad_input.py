"""What the page refuses to take in, and what it shows of what older versions took in."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from PIL import EpsImagePlugin, Image

from resight.gallery import Gallery

POLICY = "content-security-policy"


def test_a_time_that_older_versions_let_in_breaks_no_page(client: Any, demo: Any) -> None:
    with sqlite3.connect(demo.folder / "gallery.sqlite") as database:
        database.execute("UPDATE sightings SET time = 1e300 WHERE person = '0001'")
    database.close()
    like = next(key for key, person in demo.truth.items() if person == "0001")
    for path in ("/", "/person?name=0001", f"/search?like={like}", "/labels.csv"):
        answer = client.get(path)
        assert answer.status_code == 200, path
    assert "1e+300 s" in client.get("/person?name=0001").text


def test_a_bug_is_told_with_the_headers_of_every_page(
    client: Any, gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(Gallery, "record", broken)
    answer = client.get("/")
    assert answer.status_code == 500
    assert "script-src 'self'" in answer.headers[POLICY]
    assert "secret" not in answer.text
    assert 'href="/people"' in answer.text  # the way on is there


def test_postscript_does_not_reach_ghostscript(
    client: Any, csrf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[object] = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_: reached.append(1))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 128\n%%EndComments\nshowpage\n"
    answer = client.post("/upload", files={"image": ("a.png", eps)}, data={"csrf": csrf})
    assert answer.status_code == 422
    assert "use PNG, JPEG, BMP, WebP or TIFF" in answer.text
    assert reached == []
    assert list(tmp_path.glob("*.eps")) == []


def test_a_small_file_of_many_pixels_is_refused_before_it_is_decoded(
    client: Any, csrf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("1", (8000, 8000)).save(tmp_path / "large.png")
    content = (tmp_path / "large.png").read_bytes()
    assert len(content) < 10_000

    def decoded(_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(Image.Image, "convert", decoded)
    answer = client.post("/upload", files={"image": ("a.png", content)}, data={"csrf": csrf})
    assert answer.status_code == 422
    assert "8000 x 8000 pixels: more than 16,000,000 are refused" in answer.text


@pytest.mark.parametrize("name", ["\x07bell", "\u202egnp.exe", "x" * 256])
def test_names_are_refused_as_in_tables(
    client: Any, gallery: Gallery, csrf: str, name: str
) -> None:
    a = str(gallery.view.table.ids[0])
    answer = client.post("/name", data={"a": a, "person": name, "csrf": csrf})
    assert answer.status_code == 422
    assert gallery.view.labels.active == []
