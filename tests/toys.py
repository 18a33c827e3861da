"""What somebody who extends resight writes: one file each, as CONTRIBUTING.md tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from resight.datasets import DATASETS
from resight.datasets.published import Dataset, Row
from resight.descriptors import DESCRIPTORS
from resight.descriptors._base import Descriptor, FeatureParts
from resight.gallery.engines.sqlite import SqliteEngine
from resight.learners._base import Codes, Floats, MetricLearner
from resight.learners._graphs import check_persons
from resight.registry import LEARNERS, LearnerSpec
from resight.tuning.candidates import Candidate


class WithinScale(MetricLearner):
    """Divide every feature by how much it differs between sightings of one person.

    It does not use `cameras`.

    References
    ----------
    None: it is a toy.

    Examples
    --------
    >>> WithinScale().fit([[0.0], [1.0], [3.0]], [0, 0, 1]).n_components_
    1
    """

    state_version = 1
    learned = "scale_"

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        check_persons(persons)
        sums = np.zeros((persons.max() + 1, X.shape[1]))
        np.add.at(sums, persons, X)
        within = X - (sums / np.bincount(persons)[:, None])[persons]
        self.scale_ = 1.0 / (np.sqrt((within**2).mean(axis=0)) + 1e-3)
        self.n_components_ = X.shape[1]

    def _embed(self, X: Floats) -> Floats:
        return X * self.scale_


class MeanColour(Descriptor):
    """Mean colour of four strips: 12 features."""

    name = "mean-colour"
    version = 1
    blocks = (12,)

    def __init__(self, *, mirror: bool = False) -> None:
        self.mirror = mirror

    def describe_once(self, image: Any) -> Floats:
        strips = np.array_split(np.resize(image, (max(4, len(image)), *image.shape[1:])), 4)
        return 0.05 + np.concatenate([strip.mean(axis=(0, 1)) for strip in strips]) / 255.0

    def feature_names(self) -> list[str]:
        return [f"strip {strip}, {colour}" for strip in range(4) for colour in "RGB"]

    def feature_parts(self) -> FeatureParts:
        strip, colour = np.divmod(np.arange(12), 3)
        return FeatureParts(4, ("R", "G", "B"), strip, strip + 1, colour)


DATASET = Dataset(
    name="yard",
    title="Yard",
    summary="two cameras over a yard",
    licence="none",
    citation="none",
    people=12,
    images=24,
    homes=("yard-images",),
    layouts={"cam1_0001.png": r"(?P<camera>cam\d)_(?P<person>\d{4})\.png"},
    row=Row,
)


class DoubleEngine(SqliteEngine):
    """Keep embeddings as 64-bit numbers, behind addresses that begin with ``double://``."""

    def _to_vectors(self, embeddings: Any) -> Iterable[bytes]:
        return (row.tobytes() for row in np.ascontiguousarray(embeddings, "<f8"))

    def _from_vectors(self, stored: Sequence[bytes], width: int) -> Any:
        wide = np.frombuffer(b"".join(stored), "<f8").reshape(-1, width)
        return wide.astype(np.float32)


# A setting that `auto` may choose.
CANDIDATE = Candidate("rbf", 30.0, "kernel", 1e-3)

# The line that each has in its registry.
LEARNER = LearnerSpec("within-scale", "Within scale", "toys", "WithinScale")
DESCRIPTOR: tuple[str, str, dict[str, Any]] = ("toys", "MeanColour", {})


def register() -> None:
    """Enter all three, as these lines would."""
    LEARNERS[LEARNER.name] = LEARNER
    DESCRIPTORS[MeanColour.name] = DESCRIPTOR
    DATASETS[DATASET.name] = DATASET
