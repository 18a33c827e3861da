"""Feature extraction: two workers against one, and what the engine costs beside the work."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from benchmarks._dask import DaskProcesses
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.descriptors._base import Describes
from resight.features.describing import CHUNK
from resight.features.store import FeatureStore
from resight.workers.executors import Executor, InProcess, LocalProcesses, cluster

PEOPLE = 1024  # seen by two cameras: 2,048 images, 32 chunks
WARM_UP = 4 * CHUNK
ROUNDS = 5
DESCRIPTORS = ("gog", "lomo-dagger")
ALONE = "no engine, this process"


class Cost(NamedTuple):
    """Seconds of the clock, of processors in all processes that took part, and in this one."""

    clock: float
    processor: float
    own: float


class Engine(NamedTuple):
    """An executor and the processes that were started for it."""

    executor: Executor
    processes: list[psutil.Process]


def run() -> str:
    """Measure by turns; ratios are medians over rounds. Workers are started and warm before."""
    with tempfile.TemporaryDirectory() as name:
        sightings = draw_cameras(Path(name) / "images", PEOPLE, 2)
        parts = [_measure(descriptor, sightings, Path(name)) for descriptor in DESCRIPTORS]
    title = (
        f"Extraction of {len(sightings):,} images in chunks of {CHUNK}, with writing the store; "
        f"seconds are the best of {ROUNDS} rounds, ratios their medians"
    )
    return "\n".join([title, *parts])


def _measure(descriptor: str, sightings: Sightings, folder: Path) -> str:
    executors: dict[str, AbstractContextManager[Executor]] = {
        ALONE: InProcess(),
        "1 local process": LocalProcesses(1),
        "2 local processes": LocalProcesses(2),
        "1 Dask worker": _dask(1),
        "2 Dask workers": _dask(2),
    }
    with ExitStack() as stack:
        engines: dict[str, Engine] = {}
        for name, executor in executors.items():
            before = psutil.Process().children(recursive=True)
            engine = Engine(stack.enter_context(executor), [])
            _cost(sightings.select(range(WARM_UP)), descriptor, folder, engine)
            started = set(psutil.Process().children(recursive=True)) - set(before)
            engines[name] = Engine(engine.executor, list(started))
        costs: dict[str, list[Cost]] = {name: [] for name in engines}
        for _ in range(ROUNDS):
            for name, engine in engines.items():
                costs[name].append(_cost(sightings, descriptor, folder, engine))
    return _table(descriptor, costs, len(sightings))


def _cost(sightings: Sightings, descriptor: str | Describes, folder: Path, engine: Engine) -> Cost:
    store = folder / "store"
    before = _now(engine)
    features = FeatureStore(store).ensure(sightings, descriptor, executor=engine.executor)
    cost = Cost(*(end - start for start, end in zip(before, _now(engine), strict=True)))
    if features.computed != len(sightings):
        raise RuntimeError(f"{features.computed} of {len(sightings)} images were computed")
    shutil.rmtree(store)
    return cost


def _now(engine: Engine) -> Cost:
    times = [process.cpu_times() for process in (psutil.Process(), *engine.processes)]
    own, *others = [spent.user + spent.system for spent in times]
    return Cost(time.perf_counter(), own + sum(others), own)


def _table(descriptor: str, costs: dict[str, list[Cost]], count: int) -> str:
    lines = [f"  {descriptor:<27}{'clock':>9}{'per image':>12}{'processor':>12}"]
    for name, found in costs.items():
        best = min(cost.clock for cost in found)
        spent = min(cost.processor for cost in found)
        each = 1e3 * best / count
        lines.append(f"    {name:<25}{best:>7.2f} s{each:>9.2f} ms{spent:>10.2f} s")
    for kind, one, two in (
        ("local", "1 local process", "2 local processes"),
        ("Dask", "1 Dask worker", "2 Dask workers"),
    ):
        clock, processor = (100 * (_ratio(costs[one], costs[ALONE], i) - 1) for i in (0, 1))
        own = 1e3 * min(cost.own for cost in costs[two]) / count
        lines += [
            f"    {kind}: two workers are {_ratio(costs[one], costs[two]):.2f} x one; the "
            f"engine costs {clock:+.1f} % of the clock, {processor:+.1f} % of the processor",
            f"      (beside the workers, this process takes {own:.2f} ms of a core an image)",
        ]
    return "\n".join(lines)


def _ratio(some: list[Cost], others: list[Cost], which: int = 0) -> float:
    """Median over rounds: what is measured in one round meets the same state of the machine."""
    return median(a[which] / b[which] for a, b in zip(some, others, strict=True))


@contextmanager
def _dask(workers: int) -> Iterator[Executor]:
    with DaskProcesses() as processes:
        processes.scheduler()
        for _ in range(workers):
            processes.worker()
        with cluster(processes.address, timeout=60) as executor:
            while executor.slots < workers:
                time.sleep(0.2)
            yield executor


if __name__ == "__main__":
    print(run())
