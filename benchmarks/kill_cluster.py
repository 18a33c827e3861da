"""Kill a Dask worker, then the scheduler, under a running extraction, and count what was done."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._dask import DaskProcesses
from resight.datasets.synthetic import draw_cameras
from resight.descriptors import descriptor
from resight.features.describing import CHUNK
from resight.features.store import FeatureStore
from resight.workers.executors import cluster, local

PEOPLE = 1000  # seen by two cameras: 2,000 crops
DESCRIPTOR = "lomo-dagger"


def run() -> str:
    """Extract serially and through a cluster in trouble; compare the stores."""
    with tempfile.TemporaryDirectory() as name, DaskProcesses() as processes:
        folder = Path(name)
        sightings = draw_cameras(folder / "images", PEOPLE, 2)
        FeatureStore(folder / "serial").ensure(sightings, DESCRIPTOR, executor=local(1))
        scheduler = processes.scheduler()
        first, _ = processes.worker(), processes.worker()
        log = folder / "log"
        events: list[str] = []

        def disturb() -> None:
            _wait_until(lambda: _described(log) > len(sightings) // 2)
            first.kill()
            events.append(f"worker killed after {_described(log)} images")
            _wait_until(lambda: _described(log) > 3 * len(sightings) // 4)
            scheduler.kill()
            scheduler.wait()
            events.append(f"scheduler killed and restarted after {_described(log)} images")
            processes.scheduler()
            processes.worker()
            processes.worker()

        with cluster(processes.address, timeout=60) as executor:
            trouble = threading.Thread(target=disturb)
            trouble.start()
            features = FeatureStore(folder / "cluster").ensure(
                sightings, _counted(DESCRIPTOR, log), executor=executor
            )
            trouble.join()
        same = _tree(folder / "serial") == _tree(folder / "cluster")
        twice = _described(log) - len(sightings)
    lines = [
        f"{len(sightings):,} crops, {DESCRIPTOR}, two Dask workers, chunks of {CHUNK}",
        *(f"  {event}" for event in events),
        f"  described {twice + len(sightings):,} images: {twice} twice; in flight were at most "
        f"3 chunks ({3 * CHUNK} images)",
        f"  failures: {len(features.failures)}; byte-equal to the serial store: {same}",
    ]
    if not same or twice > 3 * CHUNK:
        raise RuntimeError("\n".join(lines))
    return "\n".join(lines)


def _counted(name: str, log: Path) -> Any:
    """Make the descriptor of that name, with one line in `log` for each image it describes."""

    class Counted:  # local, so that it travels to workers by value
        def __init__(self) -> None:
            self.inner = descriptor(name)
            self.name, self.blocks = self.inner.name, self.inner.blocks
            self.n_features, self.fingerprint = self.inner.n_features, self.inner.fingerprint

        def describe(self, image: NDArray[np.uint8]) -> NDArray[np.float64]:
            handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, b"x")
            os.close(handle)
            return self.inner.describe(image)

    return Counted()


def _described(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


def _tree(store: Path) -> dict[str, bytes]:
    files = (path for path in sorted(store.rglob("*")) if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


if __name__ == "__main__":
    print(run())
