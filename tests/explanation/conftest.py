"""Drawn people and models of them, described once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from resight import KXQDA
from resight.datasets.sightings import Sightings
from resight.datasets.synthetic import draw_cameras
from resight.models.model import Model


@dataclass(frozen=True)
class Drawn:
    """Forty people before two cameras; a model learned from the first half."""

    sightings: Sightings
    features: Any
    trained: Any
    model: Model

    def fitted(self, learner: Any, normalize: bool = True) -> Model:
        rows = self.trained
        return Model(("whos-star",), learner, normalize=normalize).fit(
            self.features[rows], self.sightings.persons[rows], self.sightings.cameras[rows]
        )

    def pair(self, person: str, other: str | None = None) -> Any:
        first = (self.sightings.persons == person) & (self.sightings.cameras == "camera-1")
        second = self.sightings.persons == (other or person)
        second &= self.sightings.cameras == "camera-2"
        return np.concatenate([np.flatnonzero(first), np.flatnonzero(second)])


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    folder = tmp_path_factory.mktemp("explanation")
    sightings = draw_cameras(folder, n_people=40, n_cameras=2, seed=4)
    model = Model(("whos-star",), KXQDA())
    features = model.describe(sightings.files())
    trained = np.flatnonzero(sightings.persons <= "0020")
    model.fit(features[trained], sightings.persons[trained], sightings.cameras[trained])
    return Drawn(sightings, features, trained, model)
