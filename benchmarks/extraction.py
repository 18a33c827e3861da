"""Feature extraction: two workers against one, and what the engine costs beside the work."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks._dask import DaskProcesses
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.experiments._extraction import CHUNK
from resight.experiments.executors import Executor, InProcess, LocalProcesses, cluster
from resight.experiments.features import FeatureStore

PEOPLE = 512  # seen by two cameras: 1,024 images, 16 chunks
WARM_UP = 4 * CHUNK
ROUNDS = 3
DESCRIPTORS = ("gog", "lomo-dagger")


def run() -> str:
    """Measure by turns, best of some rounds; workers are started and warm before."""
    with tempfile.TemporaryDirectory() as name:
        sightings = draw_cameras(Path(name) / "images", PEOPLE, 2)
        parts = [_measure(descriptor, sightings, Path(name)) for descriptor in DESCRIPTORS]
    title = f"Extraction of {len(sightings):,} images in chunks of {CHUNK}, best of {ROUNDS}"
    return "\n".join([title, *parts])


def _measure(descriptor: str, sightings: Sightings, folder: Path) -> str:
    with ExitStack() as stack:
        engines: dict[str, Executor] = {
            "no engine, this process": InProcess(),
            "1 local process": stack.enter_context(LocalProcesses(1)),
            "2 local processes": stack.enter_context(LocalProcesses(2)),
            "1 Dask worker": stack.enter_context(_dask(1)),
            "2 Dask workers": stack.enter_context(_dask(2)),
        }
        for engine in engines.values():
            _seconds(sightings.select(range(WARM_UP)), descriptor, folder, engine)
        best = dict.fromkeys(engines, float("inf"))
        for _ in range(ROUNDS):
            for name, engine in engines.items():
                best[name] = min(best[name], _seconds(sightings, descriptor, folder, engine))
    return _table(descriptor, best, len(sightings))


def _seconds(sightings: Sightings, descriptor: str, folder: Path, engine: Executor) -> float:
    store = folder / "store"
    start = time.perf_counter()
    features = FeatureStore(store).ensure(sightings, descriptor, executor=engine)
    seconds = time.perf_counter() - start
    if features.computed != len(sightings):
        raise RuntimeError(f"{features.computed} of {len(sightings)} images were computed")
    shutil.rmtree(store)
    return seconds


def _table(descriptor: str, best: dict[str, float], count: int) -> str:
    alone = best["no engine, this process"]
    lines = [f"  {descriptor}"]
    for name, seconds in best.items():
        lines.append(
            f"    {name:<25}{seconds:>7.2f} s{1e3 * seconds / count:>8.2f} ms/image"
            f"{alone / seconds:>7.2f} x"
        )
    for kind, one, two in (
        ("local", "1 local process", "2 local processes"),
        ("Dask", "1 Dask worker", "2 Dask workers"),
    ):
        lines.append(
            f"    {kind}: two workers are {best[one] / best[two]:.2f} x one; "
            f"the engine costs {100 * (best[one] / alone - 1):+.1f} %"
        )
    return "\n".join(lines)


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
