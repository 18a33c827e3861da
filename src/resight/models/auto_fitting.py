"""Choosing the setting of a model on all labelled sightings, mirror images included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resight.errors import InputError
from resight.models.training import Training
from resight.tuning.auto import AutoKXQDA
from resight.tuning.gram import GramSpace, gram_space


class Chosen(NamedTuple):
    """A learner that will fit what was chosen, on which features, and how all else scored."""

    learner: AutoKXQDA
    mirror: bool
    candidates: list[dict[str, Any]]


def choose_learner(learner: AutoKXQDA, training: Training, mirror: bool = False) -> Chosen:
    """Choose on training rows.

    Parameters
    ----------
    learner : AutoKXQDA
        Says how to choose; its `blocks` and `setting` are found here.
    training : Training
        With one variant of the features, or with two to choose from.
    mirror : bool
        Whether the only variant is averaged over mirror images.
    """
    options = learner.get_params()
    for name in ("blocks", "setting"):
        if options.pop(name) is not None:
            raise InputError(f"{name!r} is found out here; give it to AutoKXQDA in Python only")
    variants = training.variants
    usable = np.zeros(len(variants[0].parts[0]), bool)
    usable[training.rows] = True
    space = GramSpace.joined(gram_space(features, usable) for features in variants)
    setting = learner.choose(space, *training.labels, mirrored=len(variants) > 1)
    made = AutoKXQDA(blocks=variants[0].blocks_of_parts, setting=setting.as_dict(), **options)
    return Chosen(made, mirror or setting.variant == "mirror", learner.candidates_)
