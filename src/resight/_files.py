"""Writing files so that a killed process leaves either the old or the new, never a half."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_PIECE = 4 * 2**20  # bytes of a large file in memory at once


@contextmanager
def atomic_write(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; on success flush it to disk and rename it over `path`.

    On any error the temporary file is removed and `path` stays as it was.
    """
    stream = open_part(path, mode)
    try:
        with stream:
            yield stream
            keep_part(stream, path)
    except BaseException:
        Path(stream.name).unlink(missing_ok=True)
        raise


def open_part(path: Path, mode: str = "wb") -> IO[Any]:
    """Open a new temporary file beside `path`, hidden and with a name that ends in ``.part``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    coding, folder = (None if "b" in mode else "utf-8"), str(path.parent)
    return tempfile.NamedTemporaryFile(
        mode, -1, coding, suffix=".part", prefix=f".{path.name}.", dir=folder, delete=False
    )


def keep_part(stream: IO[Any], path: Path) -> None:
    """Flush a temporary file to disk, close it and rename it to `path`, in the same folder."""
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()
    part = Path(stream.name)
    part.chmod(0o666 & ~_umask())
    part.replace(path)
    sync_folder(path.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, which must not exist; on success it becomes `path`.

    On any error the temporary folder is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        yield part
        for file in part.rglob("*"):
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
        part.chmod(0o777 & ~_umask())
        part.replace(path)
        sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable (a no-op where folders cannot be opened)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, document: Any) -> None:
    """Write `document` as readable JSON, atomically."""
    with atomic_write(path, "w") as stream:
        json.dump(document, stream, indent=1, sort_keys=True, allow_nan=False)
        stream.write("\n")


def digest_of(*parts: bytes | memoryview | str) -> str:
    """Short, stable fingerprint of some bytes and texts (BLAKE2b, 128 bits, hexadecimal)."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))  # ("ab", "c") is not ("a", "bc")
        state.update(data)
    return state.hexdigest()


def digest_of_file(path: Path | str, most: int | None = None) -> str:
    """Fingerprint of a file's contents, equal to ``digest_of(path.read_bytes())``.

    What is no regular file, or larger than `most` bytes, is an OSError: pipes and devices never
    begin or never end.
    """
    with open(path, "rb", buffering=0, opener=_at_once) as stream:  # buffers would lock each other
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if most is not None and found.st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most // 2**20:,} MB", str(path))
        if found.st_size <= _PIECE:
            return digest_of(stream.readall())
        state = hashlib.blake2b(found.st_size.to_bytes(8, "little"), digest_size=16)
        while piece := stream.read(_PIECE):
            state.update(piece)
        return state.hexdigest()


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # nobody may write to a pipe


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
