"""Looking for byte strings in whatever a database has written."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

import numpy as np

Needles = Sequence[bytes]
Traces = dict[str, set[bytes]]  # place -> needles that were found there
_LENGTH = 32  # bytes of a needle
_HEADER = 1024  # bytes at the beginning of an image that may be those of its format
_DISTINCT = 12  # different bytes that tell a needle from padding, zeros and text
_KEY = 3  # bytes by which candidates are found
_BLOCK = 1 << 20  # bytes that are looked through at once
_HELD: dict[tuple[int, int], int] = {}  # descriptors of scanned files, by device and inode
_HOLDING = threading.Lock()


def needles_of(content: bytes, n: int = 8) -> list[bytes]:
    """Take up to `n` short pieces from all over a value that hardly anything else contains.

    Several, because a database cuts values into pages and one piece may lie across a cut. The
    beginning of a file is left out: all images of a format have the same.
    """
    first = min(_HEADER, len(content) // 4)
    starts = np.linspace(first, max(first, len(content) - _LENGTH), n).astype(int)
    pieces = {content[start : start + _LENGTH] for start in starts.tolist()}
    return sorted(piece for piece in pieces if len(set(piece)) >= _DISTINCT)


class Scanner:
    """Finds which of many needles occur in a stream of bytes.

    Each needle is looked for by three of its bytes, with a table of all 2^24 such keys, so that the
    time does not grow with the number of needles. Zeros, of which a database has many, are no key.
    """

    def __init__(self, needles: Iterable[bytes]) -> None:
        self._short = [needle for needle in needles if 0 < len(needle) < _KEY]
        self._by_key: dict[bytes, list[tuple[int, bytes]]] = {}  # key -> its offset, the needle
        for needle in needles:
            if len(needle) >= _KEY:
                # The key with most different bytes, without those that are everywhere.
                keys = [{*needle[i : i + _KEY]} - {0, 255} for i in range(len(needle) - _KEY + 1)]
                start = max(range(len(keys)), key=lambda i: len(keys[i]))
                self._by_key.setdefault(needle[start : start + _KEY], []).append((start, needle))
        self._wanted = np.zeros(1 << (8 * _KEY), bool)
        for key in self._by_key:
            self._wanted[int.from_bytes(key, "little")] = True
        self._overlap = max((len(needle) for needle in needles), default=1) - 1

    def scan(self, blocks: Iterable[bytes]) -> set[bytes]:
        """Return the needles that occur, also those that lie across two blocks."""
        found: set[bytes] = set()
        content = b""
        for block in blocks:
            content += block
            if len(content) >= _BLOCK:
                found |= self._within(content)
                content = content[len(content) - self._overlap :]
        return found | self._within(content)

    def _within(self, content: bytes) -> set[bytes]:
        found = {needle for needle in self._short if needle in content}
        if len(content) < _KEY or not self._by_key:
            return found
        values = np.frombuffer(content, np.uint8).astype(np.uint32)
        keys = values[:-2] | (values[1:-1] << np.uint32(8)) | (values[2:] << np.uint32(16))
        for place in np.flatnonzero(self._wanted[keys]).tolist():
            for start, needle in self._by_key[content[place : place + _KEY]]:
                if place >= start and content.startswith(needle, place - start):
                    found.add(needle)
        return found


def file_blocks(path: str, size: int = _BLOCK) -> Iterable[bytes]:
    """Read a file block by block; one that is gone has none.

    It stays open as long as it exists. When a process closes any descriptor of a file, POSIX drops
    all locks that the process has on that file, those of SQLite's connections too: the next process
    to open the gallery would take it for unused and empty the index of its write-ahead log under
    us.
    """
    try:
        handle = _held(path)
    except FileNotFoundError:
        return
    offset = 0
    while block := _read(handle, size, offset):
        yield block
        offset += len(block)


def _read(handle: int, size: int, offset: int) -> bytes:
    with _HOLDING:  # os.pread would need no lock, but Windows has none
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, size)


def _held(path: str) -> int:
    with _HOLDING:
        status = os.stat(path)
        key = status.st_dev, status.st_ino  # an inode that is held open is not given to a new file
        if key not in _HELD:
            for file in [file for file, held in _HELD.items() if not os.fstat(held).st_nlink]:
                os.close(_HELD.pop(file))
            _HELD[key] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        return _HELD[key]


def scanned(places: Iterable[tuple[str, Iterable[bytes]]], needles: Needles) -> Traces:
    """Scan several places; return those where something was found."""
    scanner = Scanner(needles)
    found = {place: scanner.scan(blocks) for place, blocks in places}
    return {place: its for place, its in found.items() if its}
