"""Sightings on their way into a gallery: files read, checked, named and put in rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery import crops
from resight.gallery.engines.base import Floats32, Table


class Described(NamedTuple):
    """Descriptors (n, n_features) and the fingerprint of what computed them."""

    features: Floats32
    fingerprint: str


@dataclass
class Added:
    """What became of the sightings given to `Gallery.add`."""

    added: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)


class Batch(NamedTuple):
    """New sightings whose images were read: `rows` are their rows in the sightings given."""

    table: Table
    rows: NDArray[np.intp]
    images: list[bytes]

    def select(self, places: Sequence[int]) -> Batch:
        """Return some of them."""
        chosen = np.array(places, np.intp)
        images = [self.images[place] for place in places]
        return Batch(self.table.select(chosen), self.rows[chosen], images)


def read_batch(
    sightings: Sightings, rows: NDArray[np.intp], known: set[str], result: Added
) -> Batch | None:
    """Read the images of some rows that are not `known` yet; None if there are none.

    What cannot be read, and what is there already, is entered in `result`.
    """
    images: dict[str, tuple[int, bytes]] = {}
    for row in rows.tolist():
        try:
            content = _read(sightings, row)
        except InputError as error:
            result.failures.append((str(sightings.paths[row]), str(error)))
            continue
        sighting = _identity(content, sightings, row)
        if sighting in known or sighting in images:
            result.already.append(sighting)
        else:
            images[sighting] = (row, content)
    if not images:
        return None
    rows = np.array([row for row, _ in images.values()], np.intp)
    contents = [content for _, content in images.values()]
    return Batch(_table(sightings, rows, list(images)), rows, contents)


def _read(sightings: Sightings, row: int) -> bytes:
    """Read an image and return what is stored of it; what is no image is refused here."""
    path = sightings.root / str(sightings.paths[row])
    content = crops.read(path)
    picture = crops.decode(content, str(path))
    box = None if sightings.boxes is None else sightings.boxes[row]
    return crops.keep(content, picture, box)[0]


def _identity(content: bytes, sightings: Sightings, row: int) -> str:
    """Name a sighting by what it is, so that adding the same file twice adds it once."""
    return digest_of(content, str(sightings.cameras[row]), repr(float(sightings.times[row])))[:24]


def _table(sightings: Sightings, rows: NDArray[np.intp], ids: list[str]) -> Table:
    return Table(
        ids=np.array(ids),
        persons=sightings.persons[rows],
        cameras=sightings.cameras[rows],
        times=sightings.times[rows],
        sequences=sightings.sequences[rows],
        sources=np.array([Path(str(path)).name for path in sightings.paths[rows]]),
        added=np.full(len(rows), time.time()),
    )
