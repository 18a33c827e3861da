"""What `resight search` costs beside describing its image, from start to end of the process.

A bare process imports NumPy and OpenCV and describes one image with the descriptors of the model.
`resight search` also opens a gallery of 1,000 sightings, loads its model, embeds, ranks, judges and
writes the log. Processor time of whole processes, by turns, with compiled code in the cache.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.features.store import FeatureStore
from resight.gallery import Gallery
from resight.gallery.engines.base import Rows, Table
from resight.models.fitting import fit
from resight.plans import DESCRIPTOR, LEARNER

N, TRAINED, ROUNDS = 1_000, 240, 7
WAYS = {"gog+lomo-dagger, kxqda": ("gog+lomo-dagger", "kxqda"), "recipe": (DESCRIPTOR, LEARNER)}
BARE = """
import sys
import cv2, numpy
from resight.descriptors import gog, lomo, whos
from resight.images import read
known = {"gog": gog, "lomo-dagger": lambda image: lomo(image, retinex=False), "whos-dagger": whos}
image = read(sys.argv[1])
for picture in (image, numpy.ascontiguousarray(image[:, ::-1]))[: int(sys.argv[3])]:
    for name in sys.argv[2].split("+"):
        known[name](picture)
"""


def run() -> str:
    """Measure and write a table."""
    rows = []
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        drawn = draw_cameras(folder / "cameras", TRAINED // 4 + 1, images_per_camera=2)
        image = str(drawn.files()[-1])  # of the one person that the model does not learn from
        for title, (descriptors, learner) in WAYS.items():
            place, mirror = filled(folder, drawn, descriptors, learner)
            rows.append(measured(title, descriptors, mirror, place, image))
        seconds = median(cost(["-m", "resight", "--help"]) for _ in range(ROUNDS))
    head = "| model | bare process, s | `resight search`, s | ratio |\n|---|---|---|---|\n"
    return f"{head}{chr(10).join(rows)}\n\n`resight --help`: {seconds:.3f} s.\n"


def measured(title: str, descriptors: str, mirror: bool, place: Path, image: str) -> str:
    """Write the row of a gallery."""
    bare = ["-c", BARE, image, descriptors, str(1 + mirror)]
    search = ["-m", "resight", "search", str(place), image]
    cost(bare), cost(search)  # fill the caches
    times = [(cost(bare), cost(search)) for _ in range(ROUNDS)]
    one, other = (median(column) for column in zip(*times, strict=True))
    ratio = median(b / a for a, b in times)
    return f"| {title} | {one:.2f} | {other:.2f} | {ratio:.2f} |"


def cost(words: Sequence[str]) -> float:
    """Run Python and return the processor time that it took."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    threads["PYTHONDONTWRITEBYTECODE"] = ""  # both find their modules compiled, as installed ones
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=os.environ | threads
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def filled(folder: Path, drawn: Sightings, descriptors: str, learner: str) -> tuple[Path, bool]:
    """Make a gallery of sightings and of mixtures of them; tell whether its model mirrors."""
    store, rng = FeatureStore(folder / "features"), np.random.default_rng(0)
    known = drawn.select(np.arange(TRAINED))
    model = fit(known, descriptor=descriptors, learner=learner, store=store, jobs=1)
    vectors = store.ensure(known, descriptors, mirror=model.mirror).features
    first, other = np.resize(np.arange(TRAINED), N), rng.integers(0, TRAINED, N)
    share = np.where(np.arange(N) < TRAINED, 0.0, rng.uniform(0.2, 0.5, N))[:, None]
    features = ((1 - share) * vectors[first] + share * vectors[other]).astype(np.float32)
    ids, text = np.array([f"{i:024x}" for i in range(N)]), np.full(N, "")
    persons = np.where(np.arange(N) < TRAINED, known.persons[first], "")
    times = 1.7e9 + np.arange(float(N))
    table = Table(ids, persons, known.cameras[first], times, text, text, np.zeros(N))
    files = known.files()
    images = [files[row].read_bytes() for row in first]
    gallery = Gallery.create(folder / f"{learner}.gallery", model)
    gallery.engine.add(Rows(table, images, features, model.embed(features).astype(np.float32)), 1)
    gallery.close()
    return folder / f"{learner}.gallery", model.mirror
