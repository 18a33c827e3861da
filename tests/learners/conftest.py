"""Reference runs of published codes, and small sets of sightings, for the tests of learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """Sightings of some persons by two cameras."""

    X: NDArray[np.float64]
    persons: NDArray[np.intp]
    cameras: NDArray[np.intp]


@dataclass(frozen=True)
class ReferenceRun(Sample):
    """A training set, test rows, and the distances that published codes gave for them."""

    queries: NDArray[np.float64]
    gallery: NDArray[np.float64]
    similar: NDArray[np.intp]
    dissimilar: NDArray[np.intp]
    folder: Path
    name: str

    def error_of(self, D: NDArray[np.float64], method: str) -> float:
        """Largest difference from the reference, relative to its largest value, up to a scale."""
        expected = np.load(self.folder / f"{self.name}__{method}.npz")["D"]
        scale = np.vdot(D, expected) / np.vdot(expected, expected)
        return float(np.abs(D / scale - expected).max() / np.abs(expected).max())


@pytest.fixture(scope="session", params=["s200", "u1000"])
def reference(request: pytest.FixtureRequest, golden: Path) -> ReferenceRun:
    folder = golden / "learners"
    data = np.load(folder / "data" / f"{request.param}.npz")
    return ReferenceRun(
        X=np.vstack([data["Xa"], data["Xb"]]),
        persons=np.concatenate([data["ya"], data["yb"]]),
        cameras=np.repeat([0, 1], [len(data["ya"]), len(data["yb"])]),
        queries=data["Ta"],
        gallery=data["Tb"],
        similar=data["pos"],
        dissimilar=data["neg"],
        folder=folder,
        name=request.param,
    )


@pytest.fixture(scope="session")
def sample() -> Callable[..., Sample]:
    """A maker of sightings: persons scattered around centres, one to `most` times per camera."""

    def make(n_persons: int = 10, n_features: int = 6, most: int = 3, seed: int = 0) -> Sample:
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, most + 1, size=(n_persons, 2))
        who, where = np.indices(counts.shape)
        persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
        centres = 2 * rng.uniform(size=(n_persons, n_features))
        X = centres[persons] + 0.3 * rng.uniform(size=(len(persons), n_features))
        order = rng.permutation(len(X))
        return Sample(X[order], persons[order], cameras[order])

    return make
