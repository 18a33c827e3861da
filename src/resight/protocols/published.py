"""The protocols of published datasets, as the k-XQDA paper measures them.

Facts about those of two cameras are in ``published.json``.

Split files of the format ``resight.splits/1`` come with resight, checked by checksum: ``people`` is
the number of people, named 1, 2, ...; each entry of ``splits`` lists its ``test`` people, everybody
else trains. Where testing is single-shot among several pictures, ``query`` and ``gallery`` hold one
digit for each test person, the number of the picture that is used. `scripts/make_splits.py` writes
these files and ``SHA256SUMS``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.protocols.split import Protocol, Split, shown
from resight.protocols.views import by_cameras, halves, people_seen_twice

SCHEMA = "resight.splits/1"
_N_SPLITS = 10


class PersonSplit(NamedTuple):
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


@dataclass(frozen=True)
class TwoViews:
    """A published protocol of two cameras, of which the second is searched."""

    name: str
    cameras: Sequence[str]
    description: str
    people: int | None = None  # where no split file is published: how many are divided by a rule
    distractors: int = 0  # in the second camera
    scoring: str = "single"

    def __call__(self, sightings: Sightings) -> Protocol:
        """Return the protocol, unless the dataset is incomplete."""
        if self.people is None:
            divided: list[Any] = [(one.train, one.test) for one in committed_splits(self.name)]
        else:
            both = people_seen_twice(sightings)
            if len(both) != self.people:
                raise InputError(
                    f"{len(both)} people of {sightings.name} appear in both cameras, expected "
                    f"{self.people}; the published protocol needs the complete dataset"
                )
            divided = [halves(both, number) for number in range(_N_SPLITS)]
        splits = tuple(by_cameras(sightings, train, test, self.cameras) for train, test in divided)
        there = (sightings.roles == "distractor") & (sightings.cameras == self.cameras[1])
        if self.distractors not in (0, there.sum()):
            raise InputError(
                f"{there.sum()} distractors in camera {self.cameras[1]!r} of {sightings.name}, "
                f"expected {self.distractors}; the published protocol needs the complete gallery"
            )
        return Protocol(self.name, splits, self.scoring, description=self.description)


_FACTS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
TWO_VIEWS = {name: TwoViews(name, **facts) for name, facts in _FACTS.items()}


def cuhk01_single_shot(sightings: Sightings) -> Protocol:
    """486 people train with all their pictures; 485 are tested with one picture a camera."""
    pictures, name = _cuhk01_pictures(sightings), "cuhk01-single-shot"
    whole, splits = TWO_VIEWS[name](sightings), []
    for split, (_, test, *shown_by) in zip(whole.splits, committed_splits(name), strict=True):
        keys = (zip(test, numbers, strict=True) for numbers in shown_by)
        query, gallery = (np.array([pictures[key] for key in one]) for one in keys)
        splits.append(Split(split.train, query, gallery))
    return replace(whole, splits=tuple(splits))


def cuhk01_multi_shot(sightings: Sightings) -> Protocol:
    """485 people train, 486 are tested; two people score the sum of their four distances."""
    _cuhk01_pictures(sightings)  # refuses an incomplete dataset
    return TWO_VIEWS["cuhk01-multi-shot"](sightings)


def roles(sightings: Sightings) -> Protocol:
    """Train, query and gallery as the data say themselves (Market-1501 and own tables)."""
    needed = ("train", "query", "gallery")
    rows = {role: np.flatnonzero(sightings.roles == role) for role in (*needed, "distractor")}
    absent = [role for role in needed if not len(rows[role])]
    if absent:
        raise InputError(
            f"no sighting of this dataset has the role {' or '.join(absent)}; "
            "the protocol 'roles' needs train, query and gallery in the column role"
        )
    gallery = np.union1d(rows["gallery"], rows["distractor"])
    return Protocol(
        "roles",
        (Split(rows["train"], rows["query"], gallery),),
        cross_camera_only=True,
        description="roles as given in the data; junk and gallery sightings of the query's person "
        "in its own camera are ignored, as in Market-1501",
    )


PUBLISHED: dict[str, dict[str, Callable[[Sightings], Protocol]]] = {
    "cuhk01": {"cuhk01-single-shot": cuhk01_single_shot, "cuhk01-multi-shot": cuhk01_multi_shot},
    "market1501": {"roles": roles},
    **{name: {name: TWO_VIEWS[name]} for name in ("grid", "prid2011", "prid450s", "viper")},
}
"""Dataset name -> its protocols, the usual one first."""


def _cuhk01_pictures(sightings: Sightings) -> dict[tuple[str, int], int]:
    """Find the row of picture k (1 and 2 of camera A, 3 and 4 of B) of each person by file name."""
    rows: dict[tuple[str, int], int] = {}
    for row, path in enumerate(sightings.paths.tolist()):
        if match := re.fullmatch(r"(\d{4})00([1-4])", PurePosixPath(path).stem):
            rows[str(int(match[1])), int(match[2])] = row
    every = product(range(1, 972), range(1, 5))
    absent = {f"{who:04d}00{number}" for who, number in every if (str(who), number) not in rows}
    if absent:
        raise InputError(
            f"{len(absent)} of 3884 CUHK01 images are missing: {shown(absent)}; the "
            "published splits need the complete campus/ folder"
        )
    return rows
