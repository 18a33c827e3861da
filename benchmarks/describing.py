"""One describing path: what ``extract`` costs beside the bare calls of the descriptor.

Both read and describe the same files in one process and one thread, some of them at a time and by
turns, because a machine's speed drifts by more within a minute than ``extract`` costs. ``extract``
also names the images by their contents, writes chunks and a table, and flushes both to the disk.
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from resight import images
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.descriptors import descriptor
from resight.features.store import FeatureStore
from resight.workers.executors import local

PEOPLE = 1024  # seen by two cameras: 2,048 images
FRESH = 64  # images of the first calls, before memory is kept between images
SHARE = 128  # images before it is the other's turn: two chunks, which get files of their own
ROUNDS = 3  # over all images
DESCRIPTOR = "gog"
LIMIT = 1.05


class Cost(NamedTuple):
    """Seconds of the clock and of the processor, and pages that the system had to hand over."""

    clock: float
    processor: float
    faults: float


class Costs(NamedTuple):
    """What each way cost for each share of the images; `fresh` is for `FRESH` images only."""

    fresh: list[Cost]
    bare: list[Cost]
    extracted: list[Cost]


def run(people: int = PEOPLE) -> str:
    """Measure in a new process, whose memory no other work has arranged."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor(1, context) as pool:
        sightings = draw_cameras(Path(name) / "images", people, 2)
        costs = pool.submit(measure, sightings, Path(name) / "store").result()
    count = len(sightings)
    clock, processor = (
        median(a[which] / b[which] for a, b in zip(costs.extracted, costs.bare, strict=True))
        for which in (0, 1)
    )
    return "\n".join(
        [
            f"{DESCRIPTOR} of {count:,} images, reading included, one process, one thread, by "
            f"turns of {SHARE}; medians over {len(costs.bare)} turns",
            f"  {'an image':<42}{'clock':>10}{'processor':>12}{'page faults':>14}",
            _line("bare calls, memory given back each time", costs.fresh, min(FRESH, count)),
            _line("bare calls, memory kept between images", costs.bare, SHARE),
            _line("extract", costs.extracted, SHARE),
            f"  extract takes {clock:.3f} x the clock of the bare calls, {processor:.3f} x the "
            f"processor (medians of ratios; at most {LIMIT})",
        ]
    )


def measure(sightings: Sightings, store: Path) -> Costs:
    """Call the descriptor and extract by turns."""
    few = sightings.select(range(min(FRESH, len(sightings))))
    costs = Costs([], [], [])
    with threadpool_limits(1):
        _bare(few)  # compiles, and fills caches
        costs.fresh.append(_bare(few))
        _extract(few, store)  # from here on memory is kept between images
        for start in ROUNDS * list(range(0, len(sightings) - SHARE + 1, SHARE)):
            share = sightings.select(range(start, start + SHARE))
            costs.bare.append(_bare(share))
            costs.extracted.append(_extract(share, store))
    return costs


def _bare(sightings: Sightings) -> Cost:
    describe = descriptor(DESCRIPTOR).describe
    before = _now()
    for file in sightings.files():
        describe(images.read(file))
    return _since(before)


def _extract(sightings: Sightings, store: Path) -> Cost:
    before = _now()
    features = FeatureStore(store).ensure(sightings, DESCRIPTOR, executor=local(1))
    cost = _since(before)
    if features.computed != len(sightings):
        raise RuntimeError(f"{features.computed} of {len(sightings)} images were computed")
    shutil.rmtree(store)
    return cost


def _now() -> Cost:
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return Cost(time.perf_counter(), time.process_time(), faults)


def _since(before: Cost) -> Cost:
    return Cost(*(end - start for start, end in zip(before, _now(), strict=True)))


def _line(name: str, costs: Sequence[Cost], count: int) -> str:
    clock, processor, faults = (median(column) / count for column in zip(*costs, strict=True))
    return f"  {name:<42}{1e3 * clock:>7.2f} ms{1e3 * processor:>9.2f} ms{faults:>14.1f}"


if __name__ == "__main__":  # a number means so many people instead, to see that it works
    print(run(*map(int, sys.argv[1:2])))
