"""What a model learns from, and the setting that is chosen on it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, require_sightings
from resight.errors import InputError
from resight.features.rows import FeatureRows, Features, Rows
from resight.plans import Plan
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_ROWS
from resight.tuning.cross_validation import Decision, choose, some_people
from resight.tuning.gram import GramSpace, gram_space

_CHOICE_ROWS = 4000  # sightings on which a large exact model chooses its setting, by whole people


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
        describe: Callable[..., Features],
        mirrors: Sequence[bool],
        labels: bool = True,
    ) -> Training:
        """Describe the sightings that count, once for each of `mirrors`; see `training_rows`."""
        labelled = training_rows(sightings, labels)
        wanted = sightings.select(labelled)
        variants = [describe(wanted, mirror=mirror) for mirror in mirrors]
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


def choose_auto(
    learner: AutoKXQDA, training: Training, mirror: bool = False
) -> tuple[AutoKXQDA, bool, Decision]:
    """Choose among everything that `auto` offers, as the learner's parameters say.

    `training` has one variant of the features, averaged over mirror images or not (`mirror`), or
    two to choose from. Returns a learner that fits what was chosen, whether it takes mirror images,
    and the decision.
    """
    variants = training.variants
    persons, cameras = training.labels
    some = some_people(persons, AUTO_ROWS)  # as the learner does when it is fitted, and says so
    usable = np.zeros(len(variants[0].parts[0]), bool)
    usable[training.rows[some]] = True
    space = GramSpace.joined(gram_space(features, usable) for features in variants)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        setting = learner.choose(space, persons[some], cameras[some], mirrored=len(variants) > 1)
    # As a file would have them: a model's fingerprint is the same after saving and loading.
    own = {"blocks": variants[0].blocks_of_parts, "setting": setting.as_dict()}
    made = AutoKXQDA(**learner.get_params() | json.loads(json.dumps(own, sort_keys=True)))
    note = "; ".join(dict.fromkeys(str(one.message) for one in caught)) or None
    words = setting.sentence(list(variants[0].descriptors))
    decision = Decision(setting.as_dict(), learner.candidates_, words, note)
    return made, mirror or setting.variant == "mirror", decision


def choose_candidate(
    plan: Plan, rows: FeatureRows, persons: NDArray[Any], cameras: NDArray[Any]
) -> Decision:
    """Choose among a plan's candidates, in the Gram space of some people if there are many."""
    some = some_people(persons, _CHOICE_ROWS)
    space = GramSpace([rows.select(some).read()], [rows.blocks])
    every = np.arange(len(some))
    decision = choose(space, every, persons[some], cameras[some], plan.candidates, plan.n_folds)
    if len(some) == len(rows):
        return decision
    return decision._replace(
        note=f"the setting was chosen on {len(np.unique(persons[some]))} of the training people "
        f"({len(some):,} of {len(rows):,} sightings); all of them train the model"
    )
