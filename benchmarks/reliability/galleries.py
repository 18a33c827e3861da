"""Every change of a gallery, on either engine."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.child import Child, State, Tell
from benchmarks.reliability.material import DAY
from benchmarks.reliability.operations import Operation
from resight._files import digest_of
from resight.errors import InputError, StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check
from resight.gallery.copying import backup, convert, restore
from resight.gallery.forgetting import expire, forget

BATCH = 2
_OLD = Path(__file__).parents[2] / "tests" / "data" / "v0.1" / "gallery.tar.xz"


class GalleryOperation(Operation):
    """A change of a gallery; `place` is a folder that it lies in, or a database."""

    def prepare(self, place: str) -> None:
        """Fill a gallery with everybody."""
        self._fill(place, slice(None))

    def _fill(self, place: str, rows: slice) -> None:
        sightings, described = self.material.some(rows)
        gallery = Gallery.create(uri(place), self.material.models[0])
        gallery.add(sightings, described=described)
        gallery.close()

    def state(self, place: str) -> State:
        """Read everything that was stored, as a search sees it."""
        return state_of(uri(place))

    def problems(self, place: str) -> list[str]:
        found = check(uri(place)).problems
        database = Path(place) / "gallery" / "gallery.sqlite"
        if database.is_file() and database.read_bytes()[18:20] != b"\2\2":
            found.append("the database is not in the mode in which readers do not wait")
        return found


def uri(place: str) -> str:
    """Address of the gallery at a place."""
    return place if place.startswith("postgresql:") else f"{place}/gallery"


def state_of(address: str) -> State:
    """Read a gallery; {} if there is none."""
    try:
        gallery = Gallery.open(address)
    except StoreError as error:
        if "no gallery at" in str(error):
            return {}
        raise
    view = gallery.view
    ids = view.table.ids.tolist()
    features = gallery.features(ids).features
    rows = {
        key: {
            "facts": (view.table.persons[row], view.table.cameras[row], view.table.times[row]),
            "image": digest_of(gallery.image(key)),
            "descriptor": digest_of(features[row].tobytes()),
        }
        for row, key in enumerate(ids)
    }
    if not equal_embeddings(view, features):
        raise RuntimeError("embeddings do not belong to the model in use")
    answers = {f"{a.kind} {a.a} {a.b}": view.labels.person(a.a) for a in view.labels.active}
    history = [generation.fingerprint for generation in view.manifest.history]
    gallery.close()
    return {
        "rows": rows,
        "answers": answers,
        "history": history,
        "retention": view.manifest.retention_days,
    }


def equal_embeddings(view: Any, features: np.ndarray) -> bool:
    """Whether the embeddings in use are those of the model in use."""
    expected = view.model.embed(features) if len(features) else np.empty((0, 1))
    found = view.index.embeddings
    return len(found) == len(expected) and np.allclose(found[:, :], expected, atol=1e-4)


class Create(GalleryOperation):
    """Make an empty gallery."""

    name = "gallery: create"

    def prepare(self, place: str) -> None:
        """Begin with nothing."""

    def act(self, place: str, tell: Tell) -> None:
        Gallery.create(uri(place), self.material.models[0]).close()

    def finish(self, place: str) -> None:
        """Make it, unless it was made."""
        if not self.state(place):
            super().finish(place)


class Add(GalleryOperation):
    """Add sightings in batches."""

    name = "gallery: add"

    def prepare(self, place: str) -> None:
        self._fill(place, slice(4))

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        sightings, described = self.material.some(slice(None))

        def stored(ids: list[str]) -> None:
            for key in ids:
                tell(key)

        gallery.add(sightings, described=described, batch_size=BATCH, on_batch=stored)
        gallery.close()


class Teach(GalleryOperation):
    """Answer questions."""

    name = "gallery: teach"

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        table = gallery.view.table
        ids = table.ids[np.argsort(table.times)].tolist()
        known = {f"{a.kind} {a.a} {a.b}" for a in gallery.view.labels.active}
        for first, second in zip(ids[::4], ids[2::4], strict=False):
            answer = f"different {first} {second}"
            if answer not in known:
                gallery.teach("different", first, second)
            tell(answer)
        gallery.close()


class Rebuild(GalleryOperation):
    """Change the model."""

    name = "gallery: rebuild"

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        gallery.rebuild(self.material.models[1], batch_size=BATCH, on_step=tell)
        gallery.close()

    def finish(self, place: str) -> None:
        """Go on, unless the new model is in use already."""
        if self.state(place)["history"][-1] != self.material.models[1].fingerprint:
            super().finish(place)


class UndoRebuild(Rebuild):
    """Go back to the model before."""

    name = "gallery: undo rebuild"

    def prepare(self, place: str) -> None:
        super().prepare(place)
        super().act(place, lambda _: None)

    def act(self, place: str, tell: Tell) -> None:
        gallery = Gallery.open(uri(place))
        gallery.undo_rebuild()
        gallery.close()

    def finish(self, place: str) -> None:
        """Go back, unless that is done."""
        if len(self.state(place)["history"]) > 1:
            self.act(place, lambda _: None)


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
        needles += [_piece(self.material.described.features[row].tobytes()) for row in rows]
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


class Backup(GalleryOperation):
    """Write a gallery into one file."""

    name = "gallery: backup"

    def act(self, place: str, tell: Tell) -> None:
        backup(uri(place), Path(place) / "backup")

    def finish(self, place: str) -> None:
        """Write it, unless it was written."""
        if not (Path(place) / "backup").exists():
            super().finish(place)

    def state(self, place: str) -> State:
        """Read what the backup would restore, and the gallery."""
        kept = {"gallery": state_of(uri(place))}
        if (Path(place) / "backup").exists():
            with tempfile.TemporaryDirectory(dir=Path(place).parent) as folder:
                restore(Path(place) / "backup", Path(folder) / "gallery")
                kept["backup"] = state_of(f"{folder}/gallery")
        return kept

    def leftovers(self, place: str, steps: int) -> list[str]:
        return sorted({file.name for file in Path(place).iterdir()} - {"gallery", "backup"})


class Restore(Create):
    """Make a gallery from a backup."""

    name = "gallery: restore"

    def prepare(self, place: str) -> None:
        self._fill(place, slice(None))
        backup(uri(place), Path(place) / "backup")
        shutil.rmtree(uri(place))

    def act(self, place: str, tell: Tell) -> None:
        restore(Path(place) / "backup", uri(place))


class Convert(Create):
    """Make a gallery from one that resight 0.1 wrote."""

    name = "gallery: convert from 0.1"
    most = 60  # reading with LanceDB takes long, and what is written is what `restore` writes

    def prepare(self, place: str) -> None:
        import lancedb  # noqa: F401  # here and not in every child

        with tarfile.open(_OLD) as archive:
            archive.extractall(place, filter="data")

        warnings.filterwarnings("ignore", "lancedb fork support")  # it is only used in children

    def act(self, place: str, tell: Tell) -> None:
        convert(f"{place}/flow/gallery", uri(place))

    def finish(self, place: str) -> None:
        """Make it, unless it was made; in a child, since lancedb starts threads."""
        if not self.state(place):
            child = Child(lambda tell: self.act(place, tell)).wait()
            if child.end != {"result": None}:
                raise RuntimeError(f"converting again: {child.end}")


GALLERY: list[type[GalleryOperation]] = [
    Create,
    Add,
    Teach,
    Rebuild,
    UndoRebuild,
    Forget,
    Retain,
    Backup,
    Restore,
    Convert,
]
