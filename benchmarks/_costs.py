"""What single steps cost on this machine: the figures from which larger ones are reckoned."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cluster_search import BATCH, stored
from benchmarks.kxqda import draw_scene
from benchmarks.market import sightings_of
from resight import KXQDA
from resight.datasets.synthetic import draw_cameras
from resight.descriptors import descriptor
from resight.gallery.engines.sqlite import SqliteEngine
from resight.gallery.index import ExactIndex
from resight.gallery.labels import Labels
from resight.gallery.manifest import Manifest
from resight.gallery.parts import Wanted, answer, digest, drop
from resight.gallery.view import View
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._landmark_sums import ChunkSums, LandmarkPencil, pair_weights
from resight.learners._landmarks import OVERSAMPLING
from resight.learners._laplacian import CrossCameraPairs

DESCRIPTORS = ("gog", "lomo-dagger")
LANDMARKS = 1024
DIMENSIONS = 256  # of embeddings in a gallery
EXACT_PEOPLE = (125, 250, 500)  # two sightings each by two cameras
SIGHTINGS = OVERSAMPLING * LANDMARKS  # against which kernel values are taken
ROWS, FEATURES = SIGHTINGS, 2048  # of the landmark measurement
SCANNED = 200_000
READ = 20_000
ROUNDS = 3


@dataclass(frozen=True)
class Costs:
    """Processor seconds of one thread.

    Attributes
    ----------
    image : describing one picture, reading it included
    features : length of its descriptors
    exact : (N, seconds) of exact fits, the kernel matrix given
    kernel : one kernel value for each feature (a row costs kernel * landmark sightings * features)
    sums : adding one row of landmark features to the sums
    pencil : solving the pencil of the landmarks
    scan : comparing a query with one embedding
    batch : likewise, in a batch of BATCH queries
    read : reading one embedding of a part from SQLite
    row : bytes that a process needs of one sighting to search a gallery, without its embedding
    """

    image: float
    features: int
    exact: tuple[tuple[int, float], ...]
    kernel: float
    sums: float
    pencil: float
    scan: float
    batch: float
    read: float
    row: float

    @property
    def exact_exponent(self) -> float:
        """Growth of the exact fit between the two largest sizes measured."""
        (n, t), (larger, longer) = self.exact[-2:]
        return float(np.log(longer / t) / np.log(larger / n))

    def exact_fit(self, n: float) -> float:
        """Seconds of an exact fit, reckoned as N^3 from the largest measured."""
        measured, seconds = self.exact[-1]
        return seconds * (n / measured) ** 3

    @property
    def landmark_row(self) -> float:
        """Seconds for one labelled sighting: kernel values and sums."""
        return self.kernel * SIGHTINGS * self.features + self.sums

    @property
    def embedding(self) -> float:
        """Seconds for the embedding of one sighting through landmarks."""
        return self.kernel * SIGHTINGS * self.features


def measure() -> Costs:
    """Measure on one thread, best of some rounds."""
    with threadpool_limits(1):
        image, features = _image()
        kernel, sums, pencil = _landmarks()
        scan, batch = _scan()
        return Costs(image, features, _exact(), kernel, sums, pencil, scan, batch, *_stored())


def _image() -> tuple[float, int]:
    described = [descriptor(name) for name in DESCRIPTORS]
    with tempfile.TemporaryDirectory() as folder:
        sightings = draw_cameras(Path(folder), 32, 2)
        paths = list(sightings.files())

        def work() -> None:
            for one in described:
                one.transform(paths)

        return _best(work) / len(paths), sum(one.n_features for one in described)


def _exact() -> tuple[tuple[int, float], ...]:
    found = []
    for people in EXACT_PEOPLE:
        scene = draw_scene(people, (2, 2))
        pairs = CrossCameraPairs(scene.persons, scene.cameras)
        seconds = _best(
            lambda scene=scene, pairs=pairs: KernelPencil(scene.K, pairs).solve(  # type: ignore[misc]
                1e-3, "relative", "dense"
            )
        )
        found.append((len(scene.K), seconds))
    return tuple(found)


def _landmarks() -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    labels = sightings_of(ROWS // 16, 6, ROWS, seed=0)
    persons, cameras = labels[:, 0], labels[:, 1]
    X = rng.normal(size=(ROWS // 16, FEATURES))[persons] + rng.normal(size=(ROWS, FEATURES))
    learner = KXQDA(landmarks=LANDMARKS)
    rows = np.arange(SIGHTINGS)
    learner.place_landmarks(X[rows], rows, LANDMARKS)
    kernel = _best(lambda: learner._rows(X)) / (ROWS * SIGHTINGS * FEATURES)
    values = learner._rows(X)
    weights = pair_weights(persons, cameras)

    def sums() -> ChunkSums:
        F = learner.nystrom_.features(values)
        return ChunkSums.of_rows(F, persons, cameras, weights)

    statistics = sums().finish(np.arange(6))
    pencil = _best(
        lambda: LandmarkPencil(statistics, learner.nystrom_.centre).solve(1e-2, "relative")
    )
    return kernel, _best(sums) / ROWS, pencil


def _scan() -> tuple[float, float]:
    rng = np.random.default_rng(0)
    index = ExactIndex(rng.normal(size=(SCANNED, DIMENSIONS)).astype(np.float32))
    queries = rng.normal(size=(BATCH, DIMENSIONS)).astype(np.float32)
    one = _best(lambda: index.search(queries[:1], 20)) / SCANNED
    return one, _best(lambda: index.search(queries, 20)) / (SCANNED * BATCH)


def _stored() -> tuple[float, float]:
    """Measure what a worker and the process that asks it need of a gallery in SQLite."""
    embeddings = np.random.default_rng(0).normal(size=(READ, DIMENSIONS)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        engine = SqliteEngine(str(Path(folder) / "gallery"))
        stored(engine, embeddings)
        numbers = engine.table().numbers
        part = Wanted(engine.uri, 1, DIMENSIONS, 0, READ + 1, READ, digest(numbers))

        def load() -> None:
            drop(part)
            answer([part])

        seconds = _best(load) / READ
        tracemalloc.start()
        table = engine.table()
        view = View(
            Manifest("", 1, ()), None, table, Labels(table.ids, table.persons, []), None, (0, 0)
        )
        kept = view.rows, view.persons, view.tracks, view.units
        size = tracemalloc.get_traced_memory()[0] / len(kept[0])
        tracemalloc.stop()
        engine.close()
    return seconds, size


def _best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    work()
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return float(best)
