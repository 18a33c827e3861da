"""Add labelled people to a saved landmark model: what `resight fit --add` does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings, seen_by_two
from resight.errors import InputError
from resight.evaluation.calibration import Calibration
from resight.evaluation.calibration_fitting import fit_calibration
from resight.features.rows import FeatureRows
from resight.features.store import FeatureStore
from resight.models.calibrating import rankings_of, seen_range, signature
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
    calibration, why_not = _calibration(model, rows, labelled.persons, labelled.cameras)
    model.add_people(rows, labelled.persons, labelled.cameras)
    if calibration is not None:
        known = signature(model, FeatureRows([rows], (rows.shape[1],)))
        model.calibration = replace(calibration, trained=known)
    return Fitted(
        model,
        n_people=len(learner.persons_),
        n_sightings=learner.statistics_.n_sightings,
        failures=features.failures,
        uncalibrated=why_not,
    )


def _calibration(
    model: Model, features: NDArray[Any], persons: NDArray[Any], cameras: NDArray[Any]
) -> tuple[Calibration | None, str | None]:
    """Learn what distances mean from new people, whom the model has not learned from yet."""
    people = len(seen_by_two(persons, cameras))
    distances = model.distances(features, features)
    rankings = list(rankings_of(distances, persons, cameras))
    try:
        made = fit_calibration(rankings, people)
    except InputError as error:
        return None, f"the new people do not suffice: {error}"
    return replace(made, **seen_range(features)), None
