"""Training rows: which sightings a model may learn from, with their vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, require_sightings
from resight.errors import InputError
from resight.features.store import Features

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Training:
    """Sightings to learn from that have vectors."""

    variants: Sequence[Features]  # a second one is averaged over mirror images, to choose from
    rows: Rows  # (N,): the rows of the features that count
    sightings: Sightings  # those of `rows`

    @classmethod
    def described(
        cls,
        sightings: Sightings,
        describe: Callable[[Sightings, bool], Features],
        mirrors: Sequence[bool],
        labels: bool = True,
    ) -> Training:
        """Describe the sightings that count, once for each of `mirrors`; see `training_rows`."""
        wanted = sightings.select(training_rows(sightings, labels))
        variants = [describe(wanted, mirror) for mirror in mirrors]
        rows = np.flatnonzero(np.logical_and.reduce([one.usable for one in variants]))
        return cls(variants, rows, wanted.select(rows)).checked()

    @classmethod
    def own(cls, sightings: Sightings, vectors: Features, labels: bool = True) -> Training:
        """Take own vectors, one row for each sighting."""
        rows = training_rows(sightings, labels)
        return cls([vectors], rows, sightings.select(rows)).checked()

    def checked(self) -> Training:
        """Return it, unless nothing can be learned from it; see `check_vectors`."""
        if not len(self.rows):
            first = self.variants[0].failures[0]
            raise InputError(f"no image could be described; {first.path}: {first.reason}")
        check_vectors(self.variants[0], self.rows, self.sightings)
        return self

    @property
    def labels(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Persons and cameras, (N,) each."""
        return self.sightings.persons, self.sightings.cameras


def check_vectors(features: Features, rows: Rows, sightings: Sightings) -> None:
    """Refuse vectors that are all equal; warn of what is equal and should not be.

    `sightings` are those of the `rows`.
    """
    constant = [
        name
        for name, part in zip(features.descriptors, features.parts, strict=True)
        if not any((part[row] != part[rows[0]]).any() for row in rows[1:])
    ]
    if len(constant) == len(features.parts):
        raise InputError(
            f"all {len(rows):,} vectors of {'+'.join(constant)} are equal, so nobody can be told "
            "apart by them; check where they come from"
        )
    for name in constant:
        warnings.warn(f"{name} has equal vectors for all sightings: it helps nothing", stacklevel=2)
    seen: dict[int, int] = {}
    for place, row in enumerate(rows.tolist()):
        first = seen.setdefault(hash(tuple(part[row].tobytes() for part in features.parts)), place)
        if sightings.persons[first] != sightings.persons[place]:
            a, b = (f"{sightings.paths[i]} ({sightings.persons[i]})" for i in (first, place))
            warnings.warn(
                f"the same picture is labelled as two people: {a} and {b}; one of them is wrong",
                stacklevel=2,
            )


def training_rows(sightings: Sightings, labels: bool = True) -> Rows:
    """Rows a model may learn from; refuse a table that has none.

    Distractors, junk and, if it needs `labels`, unknown people are left out, and so are sightings
    marked as query or gallery when others are marked as train.
    """
    usable = ~np.isin(require_sightings(sightings).roles, ("distractor", "junk"))
    if labels:
        usable &= sightings.persons != UNKNOWN_PERSON
    if (sightings.roles == "train").any():
        usable &= sightings.roles == "train"
    rows = np.flatnonzero(usable)
    if not len(rows):
        raise InputError(
            f"none of the {len(sightings)} sightings has a person, so a model cannot be "
            "trained; name people by folders <camera>/<person>/* or in a CSV's person column"
        )
    return rows
