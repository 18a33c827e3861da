"""A network as a descriptor: what extraction costs beside onnxruntime itself.

All read the same files, on one thread and by turns. The plain loop reads, prepares and runs batches
of the same size and keeps the vectors in memory; extraction also names images by their contents,
and writes chunks and a table to the disk. The network is OSNet x0.25 where its file is beside the
checkout, else a small one that is made here.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from PIL import Image
from threadpoolctl import threadpool_limits

from benchmarks._pages import DOCS
from benchmarks._sampling import watch_resight
from benchmarks.extraction import Engine, _cost
from resight import images
from resight.datasets.sightings import Sightings
from resight.descriptors import Network
from resight.features.store import FeatureStore
from resight.workers.executors import InProcess, LocalProcesses

OSNET = DOCS.parents[1] / "shared" / "models" / "osnet_x0_25_msmt17.onnx"
IMAGES = 1024
MANY = 10_000
SHARE = 128  # images of a turn: two chunks, which get files of their own
ROUNDS = 3


class Times(NamedTuple):
    """Processor seconds of one turn."""

    run: float
    loop: float
    extract: float


def run() -> str:
    """Measure in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = OSNET if OSNET.is_file() else small_network(folder / "small.onnx")
        network, sightings = Network(file), noise(folder / "images", IMAGES)
        with threadpool_limits(1):
            turns = [
                _turn(network, sightings.select(range(start, start + SHARE)), folder / "store")
                for _ in range(ROUNDS)
                for start in range(0, IMAGES, SHARE)
            ]
        one, two = _workers(network, sightings, folder)
        noise(folder / "many", MANY)
        watched = watch_resight(["extract", "many", "--descriptor", str(file)], folder)
    each = [1e3 * median(column) / SHARE for column in zip(*turns, strict=True)]
    ratio = median(turn.extract / turn.loop for turn in turns)
    alone = median(turn.extract / turn.run for turn in turns)
    return "\n".join(
        [
            f"{network.name}, batches of {network.batch}, {IMAGES:,} images of 128 x 64 pixels; "
            "processor time of one thread, medians over turns",
            f"  onnxruntime alone, on prepared batches {each[0]:8.2f} ms an image",
            f"  plain loop: read, prepare, run         {each[1]:8.2f} ms",
            f"  extract into a feature store           {each[2]:8.2f} ms: {ratio:.2f} x the loop, "
            f"{alone:.2f} x onnxruntime alone",
            f"  two local workers                      {one / two:8.2f} x one",
            f"  resight extract of {MANY:,} images, all cores: {watched.seconds:.0f} s, at most "
            f"{watched.resident:.2f} GB resident in all processes together ({watched.own:.2f} GB "
            "without what they share)",
        ]
    )


def noise(folder: Path, count: int) -> Sightings:
    """Write images that all differ, as two cameras of one folder each."""
    rng, paths = np.random.default_rng(0), []
    for number in range(count):
        coarse = rng.integers(0, 256, (16, 8, 3), np.uint8)
        path = Path(f"camera-{number % 2}") / f"{number // 2:05d}" / "1.jpg"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(coarse).resize((64, 128)).save(folder / path, quality=90)
        paths.append(str(path))
    labels = np.array([path.split("/")[:2] for path in paths])
    return Sightings(np.array(paths), labels[:, 1], labels[:, 0], root=folder, name="noise")


def small_network(file: Path) -> Path:
    """Write a network of three convolutions, for machines without OSNet."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng, nodes, weights, last = np.random.default_rng(0), [], [], "images"
    for number, (before, after) in enumerate([(3, 32), (32, 64), (64, 128)]):
        kernel = rng.normal(size=(after, before, 3, 3)).astype(np.float32) / (3 * before**0.5)
        weights.append(numpy_helper.from_array(kernel, f"kernel{number}"))
        names = [last, f"kernel{number}"]
        nodes.append(helper.make_node("Conv", names, [f"conv{number}"], strides=[2, 2]))
        nodes.append(helper.make_node("Relu", [f"conv{number}"], [f"relu{number}"]))
        last = f"relu{number}"
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["middle"]))
    nodes.append(helper.make_node("Flatten", ["middle"], ["vectors"]))
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("images", kind, ["n", 3, 256, 128])],
        [helper.make_tensor_value_info("vectors", kind, ["n", 128])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(file))
    return file


def _turn(network: Network, share: Sightings, store: Path) -> Times:
    files, way, session = share.files(), network.preprocessing, network.session
    batches = [
        files[start : start + network.batch] for start in range(0, len(files), network.batch)
    ]

    def loop() -> None:
        for batch in batches:
            session.run(way.batch([images.read(file) for file in batch]))

    prepared = [way.batch([images.read(file) for file in batch]) for batch in batches]
    times = []
    for work in (
        lambda: [session.run(batch) for batch in prepared],
        loop,
        lambda: FeatureStore(store).ensure(share, network, executor=InProcess()),
    ):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    shutil.rmtree(store)
    return Times(*times)


def _workers(network: Network, sightings: Sightings, folder: Path) -> tuple[float, float]:
    """Clock seconds of one and of two local processes that are warm, the best of some rounds."""
    best = []
    for jobs in (1, 2):
        with LocalProcesses(jobs) as executor:
            engine = Engine(executor, [])
            costs = [_cost(sightings, network, folder, engine).clock for _ in range(ROUNDS + 1)]
        best.append(min(costs[1:]))
    return best[0], best[1]


if __name__ == "__main__":
    print(run())
