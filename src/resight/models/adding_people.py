"""Add labelled people to a saved model: what `resight fit --add` does."""

from __future__ import annotations

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.rows import FeatureRows
from resight.features.store import FeatureStore
from resight.models.fitting import Fitted
from resight.models.model import Model
from resight.models.training import training_rows
from resight.workers.executors import Executor


def add_people(
    model: Model, sightings: Sightings, store: FeatureStore, executor: Executor | None = None
) -> Fitted:
    """Add the people of every labelled sighting that can be described, in place.

    Which sightings count is as in `fit_model`; they are described as the model says. People who
    were learned from before are refused before anything is described.
    """
    if not (isinstance(model, Model) and model.descriptors):
        raise InputError(
            f"this {type(model).__name__} was fitted on vectors given by the user, so images "
            "cannot be added to it; give its add_people vectors of the same kind"
        )
    learner = model.extensible()
    training = sightings.select(training_rows(sightings))
    learner.refuse_known(np.unique(training.persons), without_cameras=False)
    features = store.ensure(training, model.descriptor, executor=executor, on_error="collect")
    kept = np.flatnonzero(features.usable)
    rows = FeatureRows(features.parts, features.blocks, kept).read()
    labelled = training.select(kept)
    model.add_people(rows, labelled.persons, labelled.cameras)
    return Fitted(
        model,
        n_people=len(learner.persons_),
        n_sightings=learner.n_sightings,
        failures=features.failures,
        uncalibrated="what distances mean was not learned again when people were added",
    )
