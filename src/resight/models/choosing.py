"""Choosing the setting of a model on its training people, and saying why in one sentence."""

from __future__ import annotations

import json
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.features.rows import FeatureRows
from resight.models.training import Training
from resight.plans import Plan
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_ROWS
from resight.tuning.cross_validation import Choice, choose, some_people
from resight.tuning.gram import GramSpace, gram_space
from resight.tuning.settings import PLAIN

_CHOICE_ROWS = 4000  # sightings on which a large exact model chooses its setting, by whole people


class Decision(NamedTuple):
    """What was chosen on training people, and how everything else scored."""

    chosen: dict[str, Any]
    candidates: list[dict[str, Any]]
    words: str
    note: str | None = None  # what the choice could not look at

    @classmethod
    def of_choice(cls, choice: Choice, note: str | None = None) -> Decision:
        """Take over what cross-validation found."""
        chosen = choice.best.params()
        words = ", ".join(f"{name} {value}" for name, value in chosen.items())
        return cls(chosen, choice.table(), words, note)

    @property
    def sentence(self) -> str:
        """Say what was chosen and why."""
        told, scores = f"chose {self.words}", [row["map"] for row in self.candidates]
        if scores:
            told += (
                f"; of {len(scores)} settings tried on held-out training people the best alone "
                f"reaches mAP {100 * max(scores):.1f}"
            )
        plain = [row["map"] for row in self.candidates if row.get("learner") in PLAIN]
        told += f", not learning {100 * max(plain):.1f}" if plain else ""
        return told if self.note is None else f"{told}; {self.note}"


def choose_auto(
    learner: AutoKXQDA, training: Training, mirror: bool = False
) -> tuple[AutoKXQDA, bool, Decision]:
    """Choose among everything that `auto` offers, as the learner's parameters say.

    `training` has one variant of the features, averaged over mirror images or not (`mirror`), or
    two to choose from. Returns a learner that fits what was chosen, whether it takes mirror images,
    and the decision.
    """
    options = learner.get_params()
    for name in ("blocks", "setting"):
        if options.pop(name) is not None:
            raise InputError(f"{name!r} is found out here; give it to AutoKXQDA in Python only")
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
    made = AutoKXQDA(**json.loads(json.dumps(own, sort_keys=True)), **options)
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
    choice = choose(space, every, persons[some], cameras[some], plan.candidates, plan.n_folds)
    note = None
    if len(some) < len(rows):
        note = (
            f"the setting was chosen on {len(np.unique(persons[some]))} of the training people "
            f"({len(some):,} of {len(rows):,} sightings); all of them train the model"
        )
    return Decision.of_choice(choice, note)


def too_many(rows: FeatureRows) -> InputError:
    """Return the refusal of more sightings than `auto` can compare settings on."""
    return InputError(
        f"the learner auto compares many settings in Gram space, for which {rows.size} are too "
        "many; use kxqda:cv, which chooses on some of the people, or kxqda with landmarks"
    )
