"""Training rows: which sightings a model may learn from, with their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError
from resight.features.store import Features

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Training:
    """Labelled sightings that have vectors.

    Attributes
    ----------
    variants : sequence of Features
        A second one is averaged over mirror images, where a learner may choose between both.
    rows : int array (N,)
        The rows of the features that count.
    sightings : Sightings
        Those of `rows`.
    """

    variants: Sequence[Features]
    rows: Rows
    sightings: Sightings

    @classmethod
    def described(
        cls,
        sightings: Sightings,
        describe: Callable[[Sightings, bool], Features],
        mirrors: Sequence[bool],
    ) -> Training:
        """Describe the labelled sightings, once for each of `mirrors`."""
        labelled = sightings.select(training_rows(sightings))
        variants = [describe(labelled, mirror) for mirror in mirrors]
        rows = np.flatnonzero(np.logical_and.reduce([one.usable for one in variants]))
        return cls(variants, rows, labelled.select(rows))

    @classmethod
    def own(cls, sightings: Sightings, vectors: Features) -> Training:
        """Take own vectors, one row for each sighting."""
        rows = training_rows(sightings)
        return cls([vectors], rows, sightings.select(rows))

    @property
    def labels(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Persons and cameras, (N,) each."""
        return self.sightings.persons, self.sightings.cameras


def training_rows(sightings: Sightings) -> Rows:
    """Rows a model may learn from; refuse a table that has none.

    Distractors, junk and unknown people are left out, and so are sightings marked as query or
    gallery when others are marked as train.
    """
    labelled = (sightings.persons != UNKNOWN_PERSON) & ~np.isin(
        sightings.roles, ("distractor", "junk")
    )
    if (sightings.roles == "train").any():
        labelled &= sightings.roles == "train"
    rows = np.flatnonzero(labelled)
    if not len(rows):
        raise InputError(
            f"none of the {len(sightings)} sightings has a person, so a model cannot be "
            "trained; name people by folders <camera>/<person>/* or in a CSV's person column"
        )
    return rows
