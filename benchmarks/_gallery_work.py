"""One round of gallery work, in the words that resight 0.1 and this resight share.

Run as a file with the resight to be measured on PYTHONPATH: ``python _gallery_work.py MATERIAL
PLACE``. Prints seconds as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.gallery import Described, Gallery

try:
    from resight.models.model import Model
except ImportError:  # where 0.1 had it
    Model = importlib.import_module("resight.model").Model  # type: ignore[misc]

FEATURES = 54_582  # of gog+lomo-dagger
TRAINED, SEARCHES = 80, 200


def main(material: Path, place: str) -> dict[str, float]:
    """Add, rebuild, open and search; return the seconds of each."""
    features = np.load(material / "features.npy")
    files = np.array(sorted(file.name for file in material.glob("*.jpg")))
    cameras = np.resize(np.array(["yard", "door"]), len(files))
    some = Sightings(files, np.full(len(files), ""), cameras, root=material, name="material")
    first, second = (_model(features, cameras, width) for width in (30, 31))
    seconds = {}
    gallery = Gallery.create(place, first)
    start = time.perf_counter()
    gallery.add(some, described=Described(features, first.descriptor_fingerprint))
    seconds["adding"] = time.perf_counter() - start
    start = time.perf_counter()
    gallery.rebuild(second)
    seconds["rebuilding"] = time.perf_counter() - start
    gallery.close()
    start = time.perf_counter()
    gallery = Gallery.open(place)
    queries = [Described(features[i : i + 1], first.descriptor_fingerprint) for i in range(50)]
    gallery.search_described(queries[0], 20)
    seconds["opening and the first search"] = time.perf_counter() - start
    start = time.perf_counter()
    for number in range(SEARCHES):
        gallery.search_described(queries[number % len(queries)], 20)
    seconds["searching"] = time.perf_counter() - start
    return seconds


def _model(features: Any, cameras: Any, width: int) -> Any:
    """Fit a model on the first sightings, as if two cameras had seen each person once."""
    persons = np.arange(TRAINED) // 2
    learner = KXQDA(kernel="linear", n_components=width)
    model = Model(("gog", "lomo-dagger"), learner)
    return model.fit(features[:TRAINED], persons, cameras[:TRAINED])


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2])))
