"""SQLite: a gallery in one file of a folder, with nothing to start.

Several processes use it at once: readers see the last commit, writers wait for one another. A
commit is on the disk when it returns (write-ahead log, ``synchronous=FULL``), and what is deleted
is overwritten (``secure_delete``).
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
import weakref
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from resight.errors import InputError, StoreError
from resight.gallery.engines.base import LAYOUT, TABLES, Engine
from resight.gallery.engines.scanning import Needles, Traces, file_blocks, scanned

NAME = "gallery.sqlite"
_APPLICATION = 0x52534754  # "RSGT": the file is a gallery, not any SQLite database
_PAGE_SIZE = 32_768  # adds twice as quickly as SQLite's usual 4 KiB; measured in docs/gallery.md
_PIECE = 2**20
_SETTINGS = ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON")
MOUNTS = Path("/proc/mounts")
_REMOTE = (  # file systems of other machines
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "lustre", "beegfs", "glusterfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
)


class SqliteEngine(Engine):
    """A gallery as one SQLite database: ``gallery.sqlite`` of a folder, or (a backup) a file."""

    _errors = (sqlite3.Error,)

    def __init__(self, uri: str, file: Path | None = None) -> None:
        super().__init__(uri)
        self._file = file or Path(uri) / NAME

    def _open(self, mode: str = "rw") -> sqlite3.Connection:
        if mode == "rw" and not self._file.is_file():
            raise StoreError(
                f"there is no gallery at {self.uri}; make one with `resight gallery create`"
            )
        refuse_network_folder(self._file.parent)
        connection = sqlite3.connect(
            f"{self._file.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self.wait,
            isolation_level=None,
            check_same_thread=False,
        )
        weakref.finalize(self, connection.close)  # galleries need not be closed by hand
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        return connection

    def _check_layout(self) -> None:
        stamps = ("application_id", "user_version")
        application, layout = (self.ask(f"PRAGMA {name}")[0][0] for name in stamps)
        if application == layout == 0 and not self._tables():
            return  # of a `create` that was killed
        if application != _APPLICATION:
            raise StoreError(
                f"{self._file} is an SQLite database, but not a gallery; nothing was changed. "
                "Give the folder of a gallery, or make one with `resight gallery create`"
            )
        self._require_layout(layout)

    def _explained(self, error: Exception) -> StoreError:
        where, text, folder = f"gallery {self.uri}", str(error), self._file.parent
        explanations = {
            "locked|busy": f"{where}: waited {self.wait:g} s for another process that is changing "
            "it (adding, rebuilding, erasing, restoring; `fuser` on the file names it). Nothing "
            "was changed; run the same command again once it is done",
            "full|I/O": f"{where}: the disk is full or cannot be written ({text}). Nothing of this "
            "step was stored, everything before it is safe; make room and run the same command "
            "again",
            "readonly|unable to open": f"{where}: cannot write in {folder} ({text}). SQLite needs "
            "that even to search: allow it for this user, or copy the gallery with `resight "
            "gallery backup` and restore it elsewhere",
            "not a database": f"{self._file} is not a gallery: not an SQLite database, or damaged "
            "from its first page on. Give the right folder, or restore a backup (resight gallery "
            "restore)",
            "": f"{where}: the database is damaged or cannot be read or written ({text}). A "
            "gallery that was copied while in use looks like that (`resight gallery backup` copies "
            "it safely). `resight gallery check` lists what is wrong; restore a backup",
        }
        return StoreError(next(told for key, told in explanations.items() if re.search(key, text)))

    def exists(self) -> bool:
        """Whether the file has our tables; says how to open a folder of 0.1, or a backup."""
        if self._file.name == NAME and (self._file.parent / "documents.lance").is_dir():
            raise StoreError(
                f"{self.uri} was written by resight 0.1 (LanceDB). Convert it into a new gallery: "
                f"resight gallery convert {self.uri} NEW"
            )
        if self._file.parent.is_file():
            raise StoreError(
                f"{self.uri} is a file; a gallery is a folder. If the file is a backup: "
                f"resight gallery restore {self.uri} NEW"
            )
        return self._file.is_file() and super().exists()

    def create(self) -> None:
        """Make the folder, the file and its tables."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make {self._file.parent}: {error.strerror}") from error
        self.close()
        with self._explaining(), closing(self._open("rwc")) as connection:
            connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
            # SQLite does not raise where this fails: it answers which mode it stays in.
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise sqlite3.OperationalError("disk I/O error")
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in TABLES.split(";"):
                    serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
                    connection.execute(statement.replace("SERIAL", serial))
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")

    def into_one_file(self) -> None:
        """Put the write-ahead log into the file for good, on the disk, and close it."""
        self.ask("PRAGMA journal_mode = DELETE")
        self.close()
        with self._file.open("rb") as stream:
            os.fsync(stream.fileno())

    def large(self, name: str) -> bytes | memoryview:
        """Read a document a piece at a time into one array: SQLite would hold a copy of its own."""
        if not hasattr(sqlite3.Connection, "blobopen"):  # Python 3.10
            return super().large(name)
        with self.transaction(reading=True):
            found = self.ask("SELECT rowid FROM documents WHERE name = ?", name)
            if not found:
                return b""
            opened = self._connected().blobopen("documents", "content", *found[0], readonly=True)
            with opened as blob:
                whole = memoryview(np.empty(len(blob), np.uint8).data)
                for start in range(0, len(blob), _PIECE):
                    whole[start : start + _PIECE] = blob.read(_PIECE)
        return whole

    def _tables(self) -> list[str]:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        return [name for (name,) in self.ask(f"{tables} AND name NOT LIKE 'sqlite%'")]

    def purge(self, needles: Needles, rewrite: bool = False, only: Sequence[str] = ()) -> Traces:
        """Empty the write-ahead log and scan; write the file anew where something is left.

        ``secure_delete`` overwrites what is deleted, but not the copies that moving rows within a
        page leaves behind: VACUUM writes a file without them.
        """
        self._empty_log()
        left = self.traces(needles)
        if rewrite or left:
            self._vacuum()
            self._empty_log()
            left = self.traces(needles)
        return left

    def _empty_log(self) -> None:
        """Move the write-ahead log into the file and cut it off, once nobody reads from it."""
        deadline = time.monotonic() + self.wait
        while self.ask("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:  # busy
            if time.monotonic() > deadline:
                raise StoreError(
                    f"gallery {self.uri}: waited {self.wait:g} s for a process that is reading or "
                    "writing it; erased data may still be in its write-ahead log. Close other "
                    f"programs that use it, then: resight gallery forget {self.uri} --resume"
                )
            time.sleep(0.05)

    def _vacuum(self) -> None:
        size = self._file.stat().st_size
        free = shutil.disk_usage(self._file.parent).free
        if free < 2 * size:
            raise StoreError(
                f"gallery {self.uri}: erased data is left between the rows of its file. Writing it "
                f"anew needs {2 * size / 2**20:.0f} MB of free disk, there are "
                f"{free / 2**20:.0f} MB. Make room, then: "
                f"resight gallery forget {self.uri} --resume"
            )
        self.ask("VACUUM")

    def traces(self, needles: Needles) -> Traces:
        """Search all files of the folder for the bytes."""
        files = sorted(path for path in self._file.parent.rglob("*") if path.is_file())
        return scanned(((p.name, file_blocks(str(p))) for p in files), needles)

    def verify(self) -> list[str]:
        """Check the file page by page, and that nothing belongs to a sighting that is not there."""
        try:
            found = [text for (text,) in self.ask("PRAGMA integrity_check") if text != "ok"]
            found += [
                f"table {row[0]}: row {row[1]} belongs to no sighting"
                for row in self.ask("PRAGMA foreign_key_check")
            ]
        except StoreError as error:
            return [str(error)]
        return [f"database: {text}" for text in found]


def refuse_network_folder(folder: Path) -> None:
    """Refuse a folder that is mounted from another machine, where the system tells.

    The write-ahead log rests on memory that all processes share; those of two machines do not.
    """
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    places = {folder.resolve(), *folder.resolve().parents}
    mounts = [(line.split()[1].replace("\\040", " "), line.split()[2]) for line in lines]
    inside = [(len(place), kind) for place, kind in mounts if Path(place) in places]
    kind = max(reversed(inside), key=lambda pair: pair[0], default=(0, ""))[1]
    if kind in _REMOTE:
        raise InputError(
            f"{folder} is a network folder ({kind}), on which several machines would damage a "
            "gallery. Keep it on a local disk, or in PostgreSQL (postgresql://user@host/database)"
        )
