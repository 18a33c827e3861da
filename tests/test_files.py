"""Atomic writing: either the old or the new, never a half."""

from __future__ import annotations

import json
import os
import stat

import pytest

from resight._files import atomic_folder, atomic_write, digest_of, digest_of_file, write_json


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "new" / "file.bin"
    with atomic_write(path) as stream:
        stream.write(b"data")
        assert not path.exists()
    assert path.read_bytes() == b"data"
    assert os.listdir(path.parent) == ["file.bin"]


def test_an_error_keeps_the_old_file_and_leaves_no_scraps(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with atomic_write(path, "w") as stream:
            stream.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_permissions_are_those_of_ordinary_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_json(tmp_path / "file.json", {})
        with atomic_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.json").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_a_folder_appears_whole(tmp_path):
    path = tmp_path / "deep" / "folder"
    with atomic_folder(path) as part:
        (part / "inner").mkdir()
        (part / "inner" / "file").write_text("text")
        assert not path.exists()
    assert (path / "inner" / "file").read_text() == "text"
    assert os.listdir(path.parent) == ["folder"]


def test_an_error_leaves_no_folder(tmp_path):
    def fail():
        with atomic_folder(tmp_path / "folder") as part:
            (part / "file").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_not_overwritten(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("mine")

    def fail():
        with atomic_folder(tmp_path / "folder") as part:
            (part / "file").write_text("other")

    with pytest.raises(OSError, match=r"not empty|exists|denied"):
        fail()
    assert (tmp_path / "folder" / "file").read_text() == "mine"
    assert os.listdir(tmp_path) == ["folder"]


def test_json_is_readable_sorted_and_strict(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    text = (tmp_path / "a.json").read_text()
    assert text.index('"a"') < text.index('"b"')
    assert json.loads(text) == {"b": 1, "a": "é"}
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text())["b"] == 1


def test_digests_depend_on_where_parts_end(tmp_path):
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of("ab") == digest_of(b"ab")
    (tmp_path / "file").write_bytes(b"ab")
    assert digest_of_file(tmp_path / "file") == digest_of(b"ab")
