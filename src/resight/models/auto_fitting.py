"""Choosing the setting of a model on all labelled sightings, mirror images included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import Sightings
from resight.descriptors import descriptor
from resight.errors import InputError
from resight.features.store import FeatureStore
from resight.learners.registry import AUTO, learner_spec
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_MIRROR
from resight.tuning.gram import GramSpace, gram_space
from resight.tuning.race import Search
from resight.workers.executors import Executor


class Chosen(NamedTuple):
    """A learner that will fit what was chosen, on which features, and how all else scored."""

    learner: AutoKXQDA
    mirror: bool
    candidates: list[dict[str, Any]]


def choose_learner(
    training: Sightings,
    store: FeatureStore,
    descriptors: str,
    params: dict[str, Any],
    *,
    mirror: bool = False,
    executor: Executor | None = None,
) -> Chosen:
    """Choose on the given sightings, all of which are labelled.

    Parameters
    ----------
    descriptors : str
        Names joined by ``+``.
    params : dict
        Of `AutoKXQDA`, without `blocks` and `setting`.
    mirror : bool
        Whether to offer descriptors averaged over mirror images only, rather than both.
    """
    for name in ("blocks", "setting"):
        if name in params:
            raise InputError(f"{name!r} is found out here; give it to AutoKXQDA in Python only")
    learner = learner_spec(AUTO).make(**params)
    offered = (True,) if mirror else AUTO_MIRROR
    variants = [
        store.ensure(training, descriptors, one, executor, on_error="collect") for one in offered
    ]
    usable = np.logical_and.reduce([features.usable for features in variants])
    space = GramSpace.joined(gram_space(features, usable) for features in variants)
    options = {k: v for k, v in learner.get_params().items() if k not in ("blocks", "setting")}
    search = Search(
        space,
        np.arange(len(space)),
        training.persons[usable],
        training.cameras[usable],
        mirrored=len(variants) > 1,
        pairs=False,
        **options,
    )
    setting = search.run()
    blocks = [descriptor(name).blocks for name in variants[0].descriptors]
    made = AutoKXQDA(blocks=blocks, setting=setting.as_dict(), **options)
    return Chosen(
        made, mirror or setting.variant == "mirror", [one.as_dict() for one in search.tried]
    )
