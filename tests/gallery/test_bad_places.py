"""Places that cannot keep a gallery, or hold something else: said in words, nothing is harmed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.engines import sqlite
from resight.gallery.forgetting import forget


@pytest.fixture
def folder(tmp_path: Path, people: Sightings, model: Callable[..., Any]) -> Path:
    """A gallery in a folder, closed."""
    gallery = Gallery.create(tmp_path / "gallery", model())
    gallery.add(people)
    gallery.close()
    return tmp_path / "gallery"


def test_a_newer_layout_is_refused_and_not_touched(folder: Path) -> None:
    file = folder / "gallery.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match=r"layout 99; this resight reads up to 5\. Update"):
        Gallery.open(folder)
    assert file.read_bytes() == before
    assert "Update resight" in " ".join(check(str(folder)).problems)


def test_a_layout_that_no_release_wrote_is_refused(folder: Path) -> None:
    connection = sqlite3.connect(folder / "gallery.sqlite")
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    with pytest.raises(StoreError, match="layout 4; this resight reads 5, and no release wrote"):
        Gallery.open(folder)


@pytest.mark.postgres
def test_a_newer_layout_in_postgresql_is_refused(postgres: str, model: Callable[..., Any]) -> None:
    import psycopg

    Gallery.create(f"{postgres}#newer", model()).close()
    with psycopg.connect(postgres, autocommit=True) as c:
        c.execute("UPDATE newer.layout SET number = 99")
    with pytest.raises(StoreError, match="layout 99"):
        Gallery.open(f"{postgres}#newer")


def test_a_wrong_file_under_the_name(tmp_path: Path, folder: Path) -> None:
    (folder / "gallery.sqlite").write_bytes(b"\x89PNG\r\n" * 999)
    with pytest.raises(StoreError, match="is not a gallery: not an SQLite database"):
        Gallery.open(folder)
    (tmp_path / "other").mkdir()
    foreign = sqlite3.connect(tmp_path / "other" / "gallery.sqlite")
    foreign.execute("CREATE TABLE songs (title)")
    foreign.close()
    with pytest.raises(StoreError, match="but not a gallery; nothing was changed"):
        Gallery.open(tmp_path / "other")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file; a gallery is a folder"):
        Gallery.open(tmp_path / "file")


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="becomes another user")
def test_a_read_only_folder(tmp_path: Path, folder: Path, model: Callable[..., Any]) -> None:
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == 0 and place != Path("/") and "pytest" in str(place):
            place.chmod(0o755)
    folder.chmod(0o555)
    (folder / "gallery.sqlite").chmod(0o444)
    os.seteuid(65534)
    try:
        with pytest.raises(StoreError, match=r"cannot write in .*gallery"):
            len(Gallery.open(folder))
        with pytest.raises(InputError, match=r"cannot make .*new: Permission denied"):
            Gallery.create(folder / "new", model())
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_folder_is_refused(
    tmp_path: Path,
    folder: Path,
    model: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda1 / ext4 rw 0 0\nhost:/export {tmp_path} {kind} rw 0 0\ntmpfs /run tmpfs rw 0 0\n"
    )
    monkeypatch.setattr(sqlite, "MOUNTS", mounts)
    with pytest.raises(InputError, match=rf"network folder \({kind}\).*PostgreSQL"):
        Gallery.open(folder)
    with pytest.raises(InputError, match="network folder"):
        Gallery.create(tmp_path / "new", model())
    mounts.write_text(f"host:/export /elsewhere {kind} rw 0 0\n/dev/sda1 / ext4 rw 0 0\n")
    assert len(Gallery.open(folder)) == 36


def test_a_gallery_copied_while_in_use(
    tmp_path: Path, folder: Path, people: Sightings, model: Callable[..., Any]
) -> None:
    """A copy without its write-ahead log is an older state, a torn one is reported by `check`."""
    gallery = Gallery.open(folder)
    late = people.select(np.arange(6))
    from dataclasses import replace

    gallery.add(replace(late, times=np.arange(6.0)))
    (tmp_path / "copy").mkdir()
    shutil.copy(folder / "gallery.sqlite", tmp_path / "copy")
    assert len(Gallery.open(tmp_path / "copy")) == 36
    assert check(str(tmp_path / "copy")).clean
    torn = bytearray((folder / "gallery.sqlite").read_bytes())
    middle = len(torn) // 2 // 32768 * 32768
    torn[middle : middle + 65536] = os.urandom(65536)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "gallery.sqlite").write_bytes(torn)
    report = check(str(tmp_path / "torn"))
    assert not report.clean
    gallery.close()


def test_too_little_disk_to_write_the_file_anew(
    folder: Path, people: Sightings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Erasing says what it needs; what was begun is finished once there is room."""
    gallery = Gallery.open(folder)
    usage = shutil.disk_usage(folder)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        name = str(gallery.view.table.sources[0])  # in rows of others, too: the scan finds it
        gallery.teach("name", str(gallery.view.table.ids[0]), person=name)
        with pytest.raises(StoreError, match=r"needs \d+ MB of free disk, there are 0 MB"):
            forget(gallery, name)
    assert gallery.info()["erasing_unfinished"] == 1
    assert forget(gallery, name).sightings == 3
    assert check(str(folder)).clean


def test_create_goes_on_after_a_kill(
    uri: str, people: Sightings, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables without a manifest are no gallery, and no bar to making one."""
    from resight.gallery.manifest import Manifest

    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "store", lambda self, engine: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Gallery.create(uri, model())
    with pytest.raises(StoreError, match="its creation was interrupted"):
        Gallery.open(uri)
    gallery = Gallery.create(uri, model())
    gallery.add(people)
    assert check(uri).clean
    gallery.close()
