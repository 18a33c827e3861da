"""Erasing from a gallery: forgetting people, removing what is too old."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.reliability.child import Tell
from benchmarks.reliability.galleries import GalleryOperation, Teach, uri
from benchmarks.reliability.material import DAY
from resight.errors import InputError
from resight.gallery import Gallery
from resight.gallery.forgetting import expire, forget


class Erase(GalleryOperation):
    """An erasing: nothing of what it erased may be found afterwards."""

    unfinished = "erasing was begun and not finished"

    def prepare(self, place: str) -> None:
        """Fill a gallery and answer some questions about everybody."""
        super().prepare(place)
        Teach(self.material).act(place, lambda _: None)

    def erased(self, steps: int) -> np.ndarray:
        """Mask of the sightings that go in the first steps."""
        raise NotImplementedError

    def leftovers(self, place: str, steps: int) -> list[str]:
        """Search all files, or all tables, for pictures, descriptors and names."""
        gone, sightings = self.erased(steps), self.material.sightings
        rows = np.flatnonzero(gone)
        needles = [_piece(sightings.files()[row].read_bytes()) for row in rows]
        for kind in (np.float16, np.float32):  # however descriptors are stored
            features = self.material.described.features.astype(kind)
            needles += [_piece(features[row].tobytes()) for row in rows]
        kept = set(sightings.persons[~gone].tolist())
        needles += [p.encode() for p in set(sightings.persons[rows].tolist()) - kept]
        if not place.startswith("postgresql:"):
            return _in_files(Path(place), needles)
        gallery = Gallery.open(place)
        found = [str(where) for where in gallery.engine.traces(needles)]
        gallery.close()
        return found


def _piece(data: bytes) -> bytes:
    """Take bytes that nothing else holds: the first after the middle that are no mere zeros."""
    pieces = (data[start:][:48] for start in range(len(data) // 2, len(data), 48))
    return next(piece for piece in pieces if len(set(piece)) > 16)


def _in_files(folder: Path, needles: list[bytes]) -> list[str]:
    found = []
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        found += [f"{file.name} holds {needle!r:.30}" for needle in needles if needle in data]
    return found


class Forget(Erase):
    """Forget people, one after the other."""

    name = "gallery: forget"

    def erased(self, steps: int) -> np.ndarray:
        return np.isin(self.material.sightings.persons, self._people()[:steps])

    def _people(self) -> list[str]:
        return sorted(set(self.material.sightings.persons.tolist()))[1 : 1 + self.steps]

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        for step, person in enumerate(self._people(), 1):
            try:
                forget(gallery, person)
            except InputError as error:
                if "unknown person" not in str(error):  # forgotten before the interruption
                    raise
            tell(step)
        gallery.close()


class Retain(Erase):
    """Remove what is older than the gallery may keep it, day by day."""

    name = "gallery: retain"

    def erased(self, steps: int) -> np.ndarray:
        return np.arange(len(self.material.sightings)) < 2 * steps

    def prepare(self, place: str) -> None:
        super().prepare(place)
        gallery = Gallery.open(uri(place))
        gallery.retain(30)
        gallery.close()

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        start = float(self.material.sightings.times.min())
        for step in range(1, self.steps + 1):
            expire(gallery, now=start + (30 + 2 * step - 0.5) * DAY)
            tell(step)
        gallery.close()
