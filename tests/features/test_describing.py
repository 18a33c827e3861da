"""What workers do for the feature store and for galleries: one thread, memory kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight._files import digest_of
from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.features.describing import Crop, Task, describe_crops
from resight.features.store import FeatureStore
from resight.workers.executors import local


def measuring(what: str) -> Any:
    """A descriptor whose vectors tell about the process that computes them."""

    class Measures:  # local, so that it travels to workers by value
        name = n_features = fingerprint = None

        def faults(self) -> list[float]:
            import resource

            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            arrays = [np.ones(3 * 2**17) for _ in range(8)]  # 24 MB, 6,000 pages
            del arrays
            return [resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before]

        def threads(self) -> list[float]:
            import cv2
            from threadpoolctl import threadpool_info

            found = [one["num_threads"] for one in threadpool_info()]
            return [max(found, default=1), cv2.getNumThreads()]

        def describe(self, image: np.ndarray) -> np.ndarray:
            return np.array(getattr(self, what)(), float)

    made = Measures()
    made.name = made.fingerprint = what  # type: ignore[assignment]
    made.n_features = {"faults": 1, "threads": 2}[what]  # type: ignore[assignment]
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="memory is kept by what glibc offers")
@pytest.mark.parametrize("jobs", [1, 2])
def test_memory_is_kept_between_images(tmp_path: Path, sightings: Sightings, jobs: int) -> None:
    with local(jobs) as executor:
        faults = FeatureStore(tmp_path / "store").ensure(
            sightings, measuring("faults"), executor=executor
        )
    assert np.median(faults.features) < 100


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_start_no_threads(
    tmp_path: Path, sightings: Sightings, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cv2

    cv2.setNumThreads(2)
    with local(jobs) as executor:
        threads = FeatureStore(tmp_path / "store").ensure(
            sightings, measuring("threads"), executor=executor
        )
    assert (threads.features == 1).all()
    assert cv2.getNumThreads() == 2


def test_contents_that_are_not_those_announced_are_refused(kit: Any, tmp_path: Path) -> None:
    sightings = kit.write_images(tmp_path, 2)
    first, second = (path.read_bytes() for path in sightings.files())
    crops = [Crop("a", "a", digest_of(first), None), Crop("b", "b", digest_of(first), None)]
    gone = Crop("c", "c", "", None)
    task = Task([*crops, gone], {"a": first, "b": second}, None)
    chunk = describe_crops(task, kit.tiny(), "tiny-1", __version__)
    assert chunk.kept.tolist() == [0]
    assert [(failure.row, failure.path) for failure in chunk.failures] == [(1, "b"), (2, "c")]
    assert "changed while" in chunk.failures[0].reason
    assert "disappeared" in chunk.failures[1].reason
