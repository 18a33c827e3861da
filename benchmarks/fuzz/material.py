"""What good command lines use, each made once; and things that nobody should be able to use."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from resight import KXQDA, XQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.datasets.table import write_table
from resight.gallery import Described, Gallery
from resight.gallery.copying import backup
from resight.models.model import Model

DESCRIPTOR = "whos-star"


@dataclass(frozen=True)
class Material:
    """Folders and files below one folder, and what is in them."""

    folder: Path
    sightings: Sightings
    model: Model
    features: np.ndarray

    def __call__(self, name: str) -> str:
        """Return the path of something by its name."""
        return str(self.folder / name)

    @property
    def image(self) -> str:
        """One crop of a person."""
        return str(self.sightings.files()[0])


def make(folder: Path) -> Material:
    """Draw people, train on them, store them; then put what is bad beside it."""
    drawn = draw_cameras(folder / "people", 8, 2, seed=3)
    features = Model((DESCRIPTOR,), KXQDA()).describe(drawn.files())
    model = Model((DESCRIPTOR,), KXQDA()).fit(features, drawn.persons, drawn.cameras)
    model.save(folder / "model")
    XQDA().fit(features[:, :50], drawn.persons, drawn.cameras).save(folder / "learner")
    gallery = Gallery.create(folder / "gallery", model)
    gallery.add(drawn, described=Described(features, model.descriptor_fingerprint))
    gallery.close()
    backup(folder / "gallery", folder / "backup.sqlite")
    write_table(drawn, folder / "people" / "table.csv")
    boxes = np.tile([0, 0, 20, 40], (len(drawn), 1))
    boxed = Sightings(drawn.paths, drawn.persons, drawn.cameras, boxes=boxes, root=drawn.root)
    write_table(boxed, folder / "people" / "boxed.csv")
    _vectors(folder, features[:, :8], drawn)
    people = sorted(set(drawn.persons.tolist()))
    splits = [{"train": people[:4], "test": people[4:]}]
    (folder / "splits.json").write_text(json.dumps(splits))
    (folder / "boxes.csv").write_text("frame,x,y,w,h\n1,0,0,20,40\n")
    (folder / "good.toml").write_text("jobs = 1\n")
    _bad_places(folder)
    return Material(folder, drawn, model, features)


def _vectors(folder: Path, vectors: np.ndarray, drawn: Sightings) -> None:
    np.save(folder / "vectors.npy", vectors)
    rows = [f"{p},{c}" for p, c in zip(drawn.persons, drawn.cameras, strict=True)]
    (folder / "vectors.csv").write_text("person,camera\n" + "\n".join(rows) + "\n")


def _bad_places(folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty.file").write_bytes(b"")
    (folder / "text.txt").write_text("some text\n")
    (folder / "junk.bin").write_bytes(np.random.default_rng(0).bytes(5000))
    (folder / "deep.json").write_text("[" * 100_000)
    os.mkfifo(folder / "pipe")
    for name in ("pipe.csv", "pipe.png", "pipe.npy"):
        os.mkfifo(folder / name)
    for name in ("zero.csv", "zero.png", "zero.npy", "zero.toml", "zero.json"):
        (folder / name).symlink_to("/dev/zero")
    strange = os.fsdecode(b"camera-\xff\xfe")
    for place in (folder / "strange" / strange / "p", folder / "strange" / "other" / "p"):
        place.mkdir(parents=True)
        (place / "a.png").write_bytes((folder / "people").glob("*/*/*.png").__next__().read_bytes())
