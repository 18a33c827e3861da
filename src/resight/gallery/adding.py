"""Sightings on their way into a gallery: files read, checked, named and put in rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight import images
from resight._files import digest_of
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.describing import Failure, box_of, crop_key
from resight.gallery import crops
from resight.gallery.engines.base import Floats32, Table


class Described(NamedTuple):
    """Descriptors (n, n_features) and the fingerprint of what computed them.

    `thumbs` are the pictures, small (see `same_pictures`), where they are at hand.
    """

    features: Floats32
    fingerprint: str
    thumbs: NDArray[np.float32] | None = None


@dataclass
class Added:
    """What became of the sightings given to `Gallery.add`.

    Attributes
    ----------
    added, already : list of str
        Ids of those that are new, and of those that were there.
    failures : list of Failure
    described : int
        Images that had to be described: their vectors were not given or in a feature store.
    imageless : int
        Sightings that are known by their vector alone.
    """

    added: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    described: int = 0
    imageless: int = 0


class Batch(NamedTuple):
    """New sightings whose images were read.

    `rows` are their rows in the sightings given, `keys` those of their vectors in a feature store;
    where there is no image, what the page shows instead is stored.
    """

    table: Table
    rows: NDArray[np.intp]
    keys: list[str]
    images: list[bytes]

    def select(self, places: Sequence[int]) -> Batch:
        """Return some of them."""
        chosen = np.array(places, np.intp)
        keys = [self.keys[place] for place in places]
        images = [self.images[place] for place in places]
        return Batch(self.table.select(chosen), self.rows[chosen], keys, images)


def read_batch(
    sightings: Sightings,
    rows: NDArray[np.intp],
    known: set[str],
    result: Added,
    vectors: Floats32 | None = None,
) -> Batch | None:
    """Read the images of some rows that are not `known` yet; None if there are none.

    What cannot be read, and what is there already, is entered in `result`. With `vectors`, one for
    each sighting, those whose file does not exist are known by their vector.
    """
    found: dict[str, tuple[int, str, bytes]] = {}
    for row in rows.tolist():
        if vectors is not None and not (sightings.root / str(sightings.paths[row])).is_file():
            key, content = "", crops.NO_IMAGE
            sighting = _identity(vectors[row].tobytes(), sightings, row)
            result.imageless += 1
        else:
            try:
                key, content = _read(sightings, row)
            except InputError as error:
                result.failures.append(Failure(row, str(sightings.paths[row]), str(error)))
                continue
            sighting = _identity(content, sightings, row)
        if sighting in known or sighting in found:
            result.already.append(sighting)
        else:
            found[sighting] = (row, key, content)
    if not found:
        return None
    rows = np.array([row for row, _, _ in found.values()], np.intp)
    keys = [key for _, key, _ in found.values()]
    contents = [content for _, _, content in found.values()]
    return Batch(_table(sightings, rows, list(found)), rows, keys, contents)


def _read(sightings: Sightings, row: int) -> tuple[str, bytes]:
    """Read an image; return its key in a feature store and what a gallery stores of it."""
    path = sightings.root / str(sightings.paths[row])
    content = crops.read(path)
    box = box_of(sightings, row)
    most = crops.MAX_PIXELS if box is None else images.MAX_PIXELS
    picture = images.read(content, str(path), most)
    return crop_key(digest_of(content), box), crops.keep(content, picture, box)[0]


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
