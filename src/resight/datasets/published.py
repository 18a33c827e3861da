"""The published datasets that resight reads, and what their file names tell.

Facts about them, and the patterns of their file names, are in ``published.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from resight.datasets._walk import images_below
from resight.datasets.sightings import Sightings
from resight.errors import InputError

_PRID2011_IN_BOTH = 200  # persons 1..200 are the same people in both cameras of PRID2011
MARKET_ROLES = {"bounding_box_train": "train", "query": "query", "bounding_box_test": "gallery"}


class Row(NamedTuple):
    """What a file name tells."""

    person: str
    camera: str
    role: str = ""
    site: str = ""
    sequence: str = ""


@dataclass(frozen=True)
class Dataset:
    """A published dataset: facts to show and the rule that reads its file names.

    `layouts` has for each layout a description and the pattern that its paths match, relative to
    the folder; `row` makes a `Row` of the named groups of such a pattern.
    """

    name: str
    title: str
    summary: str
    citation: str
    people: int  # seen by at least two cameras
    images: int  # pictures that the loader returns for a complete copy
    homes: Sequence[str]  # folder names under which it may lie below a common data folder
    layouts: dict[str, str]
    row: Callable[..., Row]
    licence: str = "research use only; not redistributed with resight"

    def load(self, root: Path) -> Sightings:
        """Read the dataset from its folder, or from a data folder that holds it, in one layout."""
        for folder in (*(root / home for home in self.homes), root):
            found = self._found(images_below(folder)) if folder.is_dir() else {}
            if len(found) > 1:
                raise InputError(
                    f"{str(folder)!r} contains {self.title} in two layouts, "
                    f"{' and '.join(found)}; keep one, or give the folder of one"
                )
            for rows in found.values():
                return sightings_of_rows(rows, folder, self.name)
        raise InputError(
            f"no {self.title} images in {str(root)!r}; expected {' or '.join(self.layouts)}: give "
            "the folder of the dataset or the folder above it"
        )

    def recognises(self, images: list[PurePosixPath]) -> bool:
        """Whether these files are mostly there and named as this dataset's are."""
        return 2 * max(map(len, self._found(images).values()), default=0) >= self.images

    def _found(self, images: list[PurePosixPath]) -> dict[str, dict[str, Row]]:
        """Return the rows of each layout that some of the files are named by."""
        found = {}
        for layout, pattern in self.layouts.items():
            matches = ((str(path), re.fullmatch(pattern, str(path))) for path in images)
            rows = {name: self.row(**match.groupdict()) for name, match in matches if match}
            if rows:
                found[layout] = rows
        return found


def sightings_of_rows(rows: Mapping[str, Row], root: Path, name: str) -> Sightings:
    """Make a table of what file names tell: paths and their rows."""
    persons, cameras, roles, sites, sequences = map(np.array, zip(*rows.values(), strict=True))
    labels = {"sequences": sequences, "roles": roles, "sites": sites}
    return Sightings(np.array(list(rows)), persons, cameras, **labels, root=root, name=name)


def _numbered(person: str, camera: str, role: str = "", site: str = "", sequence: str = "") -> Row:
    return Row(str(int(person)), camera, role, site, sequence)


def _grid(person: str, camera: str, site: str) -> Row:
    """Person 0 is a distractor; the protocol's camera is the folder, the real one is the site."""
    return _numbered(person, camera, role="" if int(person) else "distractor", site=site)


def _market(folder: str, person: str, camera: str, sequence: str) -> Row:
    """Person 0000 is a distractor, -1 is junk that evaluation leaves out."""
    role = {"0000": "distractor", "-1": "junk"}.get(person, MARKET_ROLES[folder])
    return _numbered(person, f"c{camera}", role, sequence=f"s{sequence}")


def _prid2011(letter: str, person: str) -> Row:
    """Tell people apart by number up to 200; beyond, each camera counts for itself.

    People whom only camera B saw fill the gallery (distractor); people whom only camera A saw have
    no match to look for and no published protocol uses them (junk).
    """
    camera, number = f"cam_{letter}", int(person)
    if number <= _PRID2011_IN_BOTH:
        return Row(str(number), camera)
    return Row(f"{letter}{number}", camera, role="junk" if letter == "a" else "distractor")


_WHO: dict[str, Callable[..., Row]] = {
    "cuhk01": lambda person, view: _numbered(person, "A" if view in "12" else "B"),
    "grid": _grid,
    "market1501": _market,
    "prid450s": lambda person, view: _numbered(person, "A" if view in "1a" else "B"),
    "prid2011": _prid2011,
    "viper": _numbered,
}
_FACTS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
DATASETS = {name: Dataset(name, **facts, row=_WHO[name]) for name, facts in _FACTS.items()}
