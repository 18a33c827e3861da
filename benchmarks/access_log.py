"""What the log costs: searches of eight clients at once, with their entries and without.

Both search the same gallery with the same queries, in short turns one after the other, so that
whatever else the machine does meets both alike. With the log no search ends before its entry is on
the disk.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from resight import KXQDA
from resight.gallery import Described, Gallery
from resight.gallery.engines.base import Rows, Table
from resight.gallery.log import Actor, log_rows, verify
from resight.models.model import Model

N, SEARCHES, CLIENTS, TURN, K, LIMIT = 50_000, 1_000, 8, 200, 24, 1.1
FEATURES, TRAINED, WIDTH = 2960, 600, 256  # of whos-star; sightings; dimensions
ANN = Actor("ann", "page", "10.0.0.7", "case 12")


def run() -> str:
    """Measure and write a sentence."""
    rng = np.random.default_rng(0)
    features = rng.random((TRAINED, FEATURES), dtype=np.float32)
    with tempfile.TemporaryDirectory(dir=".") as folder, threadpool_limits(1):
        gallery = _filled(Path(folder) / "gallery", features)
        fingerprint = gallery.view.manifest.descriptor
        asked = [
            Described(features[i % TRAINED][None] + np.float32(0.01), fingerprint)
            for i in range(SEARCHES)
        ]
        seconds = {True: np.zeros(2), False: np.zeros(2)}  # of the clock, of the processor
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(partial(_search, gallery, False), asked[:CLIENTS]))  # unmeasured
            for start in range(0, SEARCHES, TURN):
                for logged in (True, False):
                    turn, begin = asked[start : start + TURN], _clocks()
                    list(clients.map(partial(_search, gallery, logged), turn))
                    seconds[logged] += _clocks() - begin
        proof = verify(log_rows(gallery.engine))
        gallery.close()
    if (proof.entries, proof.problems) != (SEARCHES, []):
        raise AssertionError(f"the log is not whole: {proof}")
    clock, processor = seconds[True] / seconds[False]
    return (
        f"{SEARCHES:,} searches in {N:,} sightings of {WIDTH} dimensions by {CLIENTS} clients at "
        f"once: {1e3 * seconds[False][0] / SEARCHES:.1f} ms each without the log; with it "
        f"{clock:.2f} times as long (at most {LIMIT}), in {processor:.2f} times the processor time."
    )


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def _filled(place: Path, features: np.ndarray) -> Gallery:
    persons, cameras = np.arange(TRAINED) // 2, np.resize(np.array(["yard", "door"]), TRAINED)
    learner = KXQDA(kernel="linear", n_components=WIDTH)
    model = Model(("whos-star",), learner).fit(features, persons, cameras)
    gallery = Gallery.create(place, model, descriptors="none")
    scale = np.asarray(model.embed(features), np.float32).std(axis=0)
    rng = np.random.default_rng(1)
    text, ids = np.full(N, ""), np.array([f"{i:024x}" for i in range(N)])
    table = Table(ids, text, np.resize(cameras, N), np.arange(float(N)), text, text, np.zeros(N))
    for rows in np.array_split(np.arange(N), 10):
        embeddings = rng.normal(size=(len(rows), len(scale))).astype(np.float32) * scale
        gallery.engine.add(Rows(table.select(rows), [b"image"] * len(rows), None, embeddings), 1)
    return gallery


def _search(gallery: Gallery, logged: bool, query: Described) -> None:
    """Search as the page does."""
    begin = time.time()
    [hits] = gallery.search_described(query, K)
    if logged:
        shown = [hit.id for hit in hits]
        digest = f"sha256:{'0' * 64}"
        gallery.record(ANN, "search", begin=begin, query=[digest], shown=shown, filters={})


if __name__ == "__main__":
    print(run())
