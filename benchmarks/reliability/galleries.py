"""Every change of a gallery, on either engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.child import State, Tell
from benchmarks.reliability.operations import Operation
from resight._files import digest_of
from resight.errors import StoreError
from resight.gallery import Gallery
from resight.gallery.checking import check

BATCH = 2


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
