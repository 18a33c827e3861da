"""Fit one model on all labelled sightings: what `resight fit` saves and a gallery uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError
from resight.experiments.executors import Executor
from resight.experiments.features import Failure, FeatureStore
from resight.experiments.registry import learner_spec
from resight.model import Model


@dataclass(frozen=True)
class Fitted:
    """A model and what it was learned from."""

    model: Model
    n_people: int
    n_sightings: int
    failures: tuple[Failure, ...]


def fit_model(
    sightings: Sightings,
    store: FeatureStore,
    descriptors: str,
    learner: str,
    params: dict[str, Any],
    *,
    mirror: bool = False,
    executor: Executor | None = None,
) -> Fitted:
    """Fit a learner on every labelled sighting that can be described.

    Distractors, junk and unknown people are left out, and so are sightings marked as query or
    gallery when others are marked as train.
    """
    spec = learner_spec(learner)
    model_learner = spec.make(**params)
    training = sightings.select(training_rows(sightings))
    features = store.ensure(training, descriptors, mirror, executor, on_error="collect")
    kept = np.flatnonzero(features.usable)
    labelled = training.select(kept)
    model = Model(features.descriptors, model_learner, mirror=mirror, normalize=spec.normalize)
    model.fit(features.features[kept], labelled.persons, labelled.cameras)
    people = len(np.unique(labelled.persons))
    return Fitted(model, people, len(labelled), features.failures)


def training_rows(sightings: Sightings) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Rows a model may learn from; refuse a table that has none."""
    labelled = (sightings.persons != UNKNOWN_PERSON) & ~np.isin(
        sightings.roles, ("distractor", "junk")
    )
    if (sightings.roles == "train").any():
        labelled &= sightings.roles == "train"
    rows = np.flatnonzero(labelled)
    if not len(rows):
        raise InputError(
            f"none of the {len(sightings)} sightings has a person, so there is nothing to learn "
            "from; name people by folders <camera>/<person>/* or in a CSV's person column"
        )
    return rows
