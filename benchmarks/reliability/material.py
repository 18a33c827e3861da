"""What the operations work on: drawn people, their descriptors, two models, a small descriptor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Described
from resight.models.model import Model

PEOPLE, CAMERAS = 8, 2
IMAGES = 200  # of noise, for the feature store: four chunks
DAY = 86_400.0


class Material:
    """Real pictures and real models, made once; small, because each fault works on a copy.

    Attributes
    ----------
    sightings : Sightings
        Eight people before two cameras, one day apart; all of them labelled.
    described : Described
        Their descriptors.
    models : list of Model
        Two models of the same descriptors.
    noise : Sightings
        Many small images.
    """

    def __init__(self, folder: Path) -> None:
        drawn = draw_cameras(folder / "people", PEOPLE, CAMERAS, seed=6)
        times = np.float64(1.7e9) + DAY * np.arange(len(drawn), dtype=np.float64)
        persons = np.char.add("visitor-", drawn.persons)  # names that no model holds
        self.sightings = replace(drawn, persons=persons, times=times)
        features = Model(("whos-star",), KXQDA()).describe(drawn.files())
        self.models = [
            Model(("whos-star",), KXQDA(n_components=n)).fit(features, drawn.persons, drawn.cameras)
            for n in (5, 6)
        ]
        self.described = Described(features, self.models[0].descriptor_fingerprint)
        self.noise = _noise(folder / "noise")

    def some(self, rows: slice) -> tuple[Sightings, Described]:
        """Choose some sightings, with their descriptors."""
        part = Described(self.described.features[rows], self.described.fingerprint)
        return self.sightings.select(np.arange(len(self.sightings))[rows]), part


class Colours:
    """Mean colours of a 4 x 2 grid: a descriptor that takes no time."""

    name = "colours"
    n_features = 24
    blocks = (24,)
    fingerprint = "colours-1"

    def describe(self, image: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Average the pixels of each cell."""
        cells = [cell for band in np.array_split(image, 4) for cell in np.array_split(band, 2, 1)]
        return np.concatenate([cell.reshape(-1, 3).mean(axis=0) for cell in cells])


def _noise(folder: Path) -> Sightings:
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir()
    paths = np.array([f"{number:04d}.png" for number in range(IMAGES)])
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (16, 8, 3), dtype=np.uint8)).save(folder / path)
    persons = (np.arange(IMAGES) // 2).astype(str)
    return Sightings(paths, persons, (np.arange(IMAGES) % 2).astype(str), root=folder, name="noise")
