"""Every change of a gallery, a feature store and a model, and what must be true after each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.reliability.child import State, Tell
from benchmarks.reliability.material import Colours, Material
from resight import load
from resight._files import digest_of
from resight.features.store import FeatureStore
from resight.workers.executors import local

_CHUNK = 64  # images that are described before their file is written


class Operation(ABC):
    """One change of something stored, at `place`: a folder, or the address of a database.

    A state is what a user sees. Under "rows" and "answers" it holds what can be there in part;
    everything else is there as it was before or as it is afterwards, nothing between.
    """

    name: str
    most: int | None = None  # faults of each kind, spread over it; None: one at every change
    unfinished = ""  # how a check says that the operation is to be finished; empty: it does not

    def __init__(self, material: Material, steps: int = 1) -> None:
        self.material = material
        self.steps = steps  # how much is done, where it can be done in steps

    def prepare(self, place: str) -> None:  # noqa: B027  # most models and stores begin empty
        """Make what is there before."""

    @abstractmethod
    def act(self, place: str, tell: Tell) -> None:
        """Do it, telling what is safe: names of rows and answers, whole numbers of steps."""

    def finish(self, place: str) -> None:
        """Do what a user does after it was interrupted: the same again."""
        self.act(place, lambda _: None)

    @abstractmethod
    def state(self, place: str) -> State:
        """Read what a user sees; {} if there is nothing."""

    def problems(self, place: str) -> list[str]:
        """List what is damaged."""
        return []

    def leftovers(self, place: str, steps: int) -> list[str]:
        """List what should be gone once so many steps are finished."""
        return []


def tree(folder: Path) -> dict[str, str]:
    """Digest of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): digest_of(path.read_bytes()) for path in files}


class SaveModel(Operation):
    """Save a model where there is none."""

    name = "model: save"

    def act(self, place: str, tell: Tell) -> None:
        self.material.models[1].save(Path(place) / "model")

    def state(self, place: str) -> State:
        folder = Path(place) / "model"
        if not folder.exists():
            return {}
        model = load(folder)
        features = self.material.described.features
        return {"model": model.fingerprint, "embeddings": model.embed(features)}

    def leftovers(self, place: str, steps: int) -> list[str]:
        names = [file for file in tree(Path(place)) if ".part" not in file]
        return names if len(names) != 2 else []


class OverwriteModel(SaveModel):
    """Save a model over another."""

    name = "model: overwrite"

    def prepare(self, place: str) -> None:
        self.material.models[0].save(Path(place) / "model")


class _Telling(Colours):
    """Tells when it begins with a chunk that the chunk before is finished."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._described = 0

    def describe(self, image: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Average colours."""
        if self._described and self._described % _CHUNK == 0:
            self._tell(self._described / _CHUNK)
        self._described += 1
        return super().describe(image)


class Extract(Operation):
    """Extract descriptors into an empty feature store."""

    name = "feature store: extract"

    def act(self, place: str, tell: Tell) -> None:
        self._extract(place, len(self.material.noise), tell)

    def _extract(self, place: str, count: int, tell: Tell) -> None:
        chosen = self.material.noise.select(np.arange(count))
        told = _Telling(tell)
        FeatureStore(Path(place) / "store").ensure(chosen, told, executor=local(1))

    def state(self, place: str) -> State:
        """Finished tables: complete or not there."""
        tables = {}
        for sidecar in sorted((Path(place) / "store").glob("*/*.json")):
            table = np.load(sidecar.with_suffix(".npy"))
            tables[sidecar.name] = digest_of(sidecar.read_bytes(), table.tobytes())
        return {"rows": tables}

    def leftovers(self, place: str, steps: int) -> list[str]:
        """List what is no table: the store is promised to be the same, whatever happened."""
        names = tree(Path(place))
        return [name for name in names if Path(name).suffix not in (".npy", ".json")]


class Resume(Extract):
    """Extract more into a feature store that has some."""

    name = "feature store: extract more"

    def prepare(self, place: str) -> None:
        self._extract(place, 100, lambda _: None)


FILES: tuple[type[Operation], ...] = (SaveModel, OverwriteModel, Extract, Resume)
