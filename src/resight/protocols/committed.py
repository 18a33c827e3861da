"""The split files that come with resight: people and picture numbers, checked by checksum.

Format ``resight.splits/1``: ``people`` is the number of people, named 1, 2, ...; each entry of
``splits`` lists its ``test`` people, everybody else trains. Where testing is single-shot among
several pictures, ``query`` and ``gallery`` hold one digit for each test person, the number of the
picture that is used. `scripts/make_splits.py` writes these files and ``SHA256SUMS``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from resight.errors import StoreError

SCHEMA = "resight.splits/1"


@dataclass(frozen=True)
class PersonSplit:
    """Who trains and who is tested; for single-shot tests, with which pictures."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    query_pictures: tuple[int, ...] = ()
    gallery_pictures: tuple[int, ...] = ()


@cache
def committed_splits(name: str) -> tuple[PersonSplit, ...]:
    """Read the splits `name`, such as "grid", if they are those published with this version."""
    folder = files("resight.datasets") / "splits"
    content = (folder / f"{name}.json").read_bytes()
    sums = (folder / "SHA256SUMS").read_text().split()
    expected = dict(zip(sums[1::2], sums[::2], strict=True))[f"{name}.json"]
    if sha256(content).hexdigest() != expected:
        raise StoreError(
            f"the split file {name}.json of this installation was modified: its SHA-256 is not "
            f"{expected}; reinstall resight, and pass your own splits with --splits FILE"
        )
    return parse(content)


def parse(content: bytes) -> tuple[PersonSplit, ...]:
    """Expand a file of the format described above."""
    document = json.loads(content)
    everybody = range(1, document["people"] + 1)
    return tuple(
        PersonSplit(
            tuple(map(str, sorted(set(everybody).difference(entry["test"])))),
            tuple(map(str, entry["test"])),
            tuple(map(int, entry.get("query", ""))),
            tuple(map(int, entry.get("gallery", ""))),
        )
        for entry in document["splits"]
    )
