"""One round of gallery work, in the words that resight 0.1 and this resight share.

Run as a file with the resight to be measured on PYTHONPATH: ``python _gallery_work.py MATERIAL
PLACE``. Prints seconds as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.gallery import Described, Gallery

try:
    from resight import saving
except ImportError:  # where 0.1 had it
    saving = importlib.import_module("resight.modelfiles")

FEATURES, WIDTH, SEARCHES = 54_582, 256, 200  # gog+lomo-dagger; a usual embedding


class Weights(saving.SavableMixin):
    """A model that costs nothing: some features, weighted."""

    descriptor_fingerprint = "wide-1"

    def __init__(self, seed: int) -> None:
        self.weights = np.random.default_rng(seed).random(WIDTH)

    @property
    def fingerprint(self) -> str:
        return f"weights-{self.weights[0]}"

    def describe(self, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        return np.zeros((len(images), FEATURES), np.float32)

    def embed(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(features[:, :WIDTH], float) * self.weights

    def probability(self, distances: NDArray[np.float64]) -> None:
        return None


def main(material: Path, place: str) -> dict[str, float]:
    """Add, rebuild, open and search; return the seconds of each."""
    features = np.load(material / "features.npy")
    files = np.array(sorted(file.name for file in material.glob("*.jpg")))
    cameras = np.resize(np.array(["yard", "door"]), len(files))
    some = Sightings(files, np.full(len(files), ""), cameras, root=material, name="material")
    seconds = {}
    gallery = Gallery.create(place, Weights(0))
    start = time.perf_counter()
    gallery.add(some, described=Described(features, Weights.descriptor_fingerprint))
    seconds["adding"] = time.perf_counter() - start
    start = time.perf_counter()
    gallery.rebuild(Weights(1))
    seconds["rebuilding"] = time.perf_counter() - start
    gallery.close()
    start = time.perf_counter()
    gallery = Gallery.open(place)
    queries = [Described(features[i : i + 1], Weights.descriptor_fingerprint) for i in range(50)]
    gallery.search_described(queries[0], 20)
    seconds["opening and the first search"] = time.perf_counter() - start
    start = time.perf_counter()
    for number in range(SEARCHES):
        gallery.search_described(queries[number % len(queries)], 20)
    seconds["searching"] = time.perf_counter() - start
    return seconds


if __name__ == "__main__":
    sys.modules["_gallery_work"] = sys.modules[__name__]
    Weights.__module__ = saving._CLASSES["Weights"] = "_gallery_work"
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
