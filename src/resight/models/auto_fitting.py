"""Choosing the setting of a model on all labelled sightings, mirror images included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.store import FeatureStore
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_MIRROR
from resight.tuning.gram import GramSpace, gram_space
from resight.workers.executors import Executor


class Chosen(NamedTuple):
    """A learner that will fit what was chosen, on which features, and how all else scored."""

    learner: AutoKXQDA
    mirror: bool
    candidates: list[dict[str, Any]]


def choose_learner(
    learner: AutoKXQDA,
    training: Sightings,
    store: FeatureStore,
    descriptors: str,
    *,
    mirror: bool = False,
    executor: Executor | None = None,
) -> Chosen:
    """Choose on the given sightings, all of which are labelled.

    Parameters
    ----------
    learner : AutoKXQDA
        Says how to choose; its `blocks` and `setting` are found here.
    descriptors : str
        Names joined by ``+``.
    mirror : bool
        Whether to offer descriptors averaged over mirror images only, rather than both.
    """
    options = learner.get_params()
    for name in ("blocks", "setting"):
        if options.pop(name) is not None:
            raise InputError(f"{name!r} is found out here; give it to AutoKXQDA in Python only")
    offered = (True,) if mirror else AUTO_MIRROR
    variants = [
        store.ensure(training, descriptors, one, executor, on_error="collect") for one in offered
    ]
    usable = np.logical_and.reduce([features.usable for features in variants])
    space = GramSpace.joined(gram_space(features, usable) for features in variants)
    labels = training.persons[usable], training.cameras[usable]
    setting = learner.choose(space, *labels, mirrored=len(variants) > 1)
    blocks = [one.blocks for one in variants[0].made_by]
    made = AutoKXQDA(blocks=blocks, setting=setting.as_dict(), **options)
    return Chosen(made, mirror or setting.variant == "mirror", learner.candidates_)
