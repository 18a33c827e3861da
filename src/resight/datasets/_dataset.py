"""What is known about a published dataset, and how its file names become sightings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from resight.datasets._walk import images_below
from resight.datasets.sightings import Sightings
from resight.errors import InputError


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
    the folder; `row` makes a `Row` of a match of such a pattern.
    """

    name: str
    title: str
    summary: str
    citation: str
    people: int  # seen by at least two cameras
    images: int  # pictures that the loader returns for a complete copy
    homes: tuple[str, ...]  # folder names under which it may lie below a common data folder
    layouts: dict[str, str]
    row: Callable[[re.Match[str]], Row]
    licence: str = "research use only; not redistributed with resight"

    def load(self, root: Path) -> Sightings:
        """Read the dataset from its folder, or from a data folder that holds it, in one layout."""
        for folder in (*(root / home for home in self.homes), root):
            if folder.is_dir():
                rows = self._rows(folder)
                if rows:
                    return sightings_of_rows(rows, folder, self.name)
        raise InputError(
            f"no {self.title} images in {str(root)!r}; expected {' or '.join(self.layouts)}: give "
            "the folder of the dataset or the folder above it"
        )

    def recognises(self, images: list[PurePosixPath]) -> bool:
        """Whether these files are mostly there and named as this dataset's are."""
        patterns = [re.compile(pattern) for pattern in self.layouts.values()]
        names = [str(path) for path in images]
        most = max(sum(bool(p.fullmatch(name)) for name in names) for p in patterns)
        return 2 * most >= self.images

    def _rows(self, folder: Path) -> dict[str, Row]:
        names = [str(path) for path in images_below(folder)]
        found: dict[str, dict[str, Row]] = {}
        for layout, pattern in self.layouts.items():
            matches = ((name, re.fullmatch(pattern, name)) for name in names)
            rows = {name: self.row(match) for name, match in matches if match}
            if rows:
                found[layout] = rows
        if len(found) > 1:
            raise InputError(
                f"{str(folder)!r} contains {self.title} in two layouts, "
                f"{' and '.join(found)}; keep one, or give the folder of one"
            )
        return next(iter(found.values()), {})


def sightings_of_rows(rows: Mapping[str, Row], root: Path, name: str) -> Sightings:
    """Make a table of what file names tell: paths and their rows."""
    persons, cameras, roles, sites, sequences = map(np.array, zip(*rows.values(), strict=True))
    labels = {"sequences": sequences, "roles": roles, "sites": sites}
    return Sightings(np.array(list(rows)), persons, cameras, **labels, root=root, name=name)
