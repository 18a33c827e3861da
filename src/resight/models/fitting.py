"""Fit one model on all labelled sightings: what `resight fit` saves and a gallery uses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, require_sightings
from resight.errors import InputError
from resight.features.rows import FeatureRows
from resight.features.store import Failure, FeatureStore
from resight.learners.kxqda import KXQDA
from resight.models.auto_fitting import choose_learner
from resight.models.calibrating import add_calibration
from resight.models.landmark_fitting import LandmarkJob, fit_landmark_model
from resight.models.model import Model
from resight.registry import learner_spec
from resight.tuning.auto import AutoKXQDA
from resight.tuning.cross_validation import Choice
from resight.workers.executors import Executor, local


@dataclass(frozen=True)
class Fitted:
    """A model and what it was learned from."""

    model: Model
    n_people: int
    n_sightings: int
    failures: tuple[Failure, ...]
    choice: Choice | None = None  # how the regulariser of a landmark model was chosen
    uncalibrated: str | None = None  # why the model states no probabilities, if it does not


def fit(
    sightings: Sightings,
    *,
    descriptor: str = "gog+lomo-dagger",
    learner: str = "kxqda",
    params: Mapping[str, object] | None = None,
    mirror: bool = False,
    calibrate: bool = True,
    store: FeatureStore | str | Path = "features",
    jobs: int | None = None,
    executor: Executor | None = None,
) -> Model:
    """Fit a model on every labelled sighting, as `resight fit` does.

    Images that cannot be read, and a model that cannot be calibrated, are warned of.

    Parameters
    ----------
    descriptor : str
        Names joined by ``+``.
    learner, params
        A learner's name and its parameters.
    mirror : bool
        Average descriptors over mirror images.
    calibrate : bool
        Learn from held-out people what distances mean, so that searches state probabilities.
    store : FeatureStore or path
        Where descriptors are kept; those it holds are not computed again.
    jobs, executor : optional
        Local processes (by default one per core), or other workers such as `resight.cluster`.

    Examples
    --------
    >>> resight.fit(resight.sightings("my/cameras")).save("model")  # doctest: +SKIP
    """
    kept_in = store if isinstance(store, FeatureStore) else FeatureStore(store)
    options: dict[str, Any] = {"mirror": mirror, "calibrate": calibrate}
    with local(jobs) if executor is None else nullcontext(executor) as workers:
        fitted = fit_model(
            sightings, kept_in, descriptor, learner, dict(params or {}), executor=workers, **options
        )
    if fitted.failures:
        first, n_failed = fitted.failures[0], len(fitted.failures)
        warnings.warn(f"left out {n_failed} images; {first.path}: {first.reason}", stacklevel=2)
    if calibrate and fitted.uncalibrated is not None:
        warnings.warn(f"not calibrated: {fitted.uncalibrated}", stacklevel=2)
    return fitted.model


def fit_model(
    sightings: Sightings,
    store: FeatureStore,
    descriptors: str,
    learner: str,
    params: dict[str, Any],
    *,
    mirror: bool = False,
    executor: Executor | None = None,
    calibrate: bool = True,
) -> Fitted:
    """Fit a learner on every labelled sighting that can be described, and calibrate it.

    Distractors, junk and unknown people are left out, and so are sightings marked as query or
    gallery when others are marked as train. With `landmarks` among the parameters of kxqda the
    training rows are never all in memory; unless `reg` is given too, it is chosen over people.
    """
    spec = learner_spec(learner)
    model_learner = spec.make(**params)
    training = require_sightings(sightings).select(training_rows(sightings))
    chosen = None
    if isinstance(model_learner, AutoKXQDA):
        chosen = choose_learner(
            model_learner, training, store, descriptors, mirror=mirror, executor=executor
        )
        model_learner, mirror = chosen.learner, chosen.mirror
    features = store.ensure(training, descriptors, mirror, executor, on_error="collect")
    kept = np.flatnonzero(features.usable)
    labelled = training.select(kept)
    model = Model(
        features.descriptors, model_learner, mirror=mirror, normalize=spec.normalizes(params)
    )
    choice = None
    if isinstance(model_learner, KXQDA):
        model_learner.landmarks = model_learner.wanted_landmarks(len(kept))
    if isinstance(model_learner, KXQDA) and model_learner.landmarks is not None:
        job = LandmarkJob(
            FeatureRows(features.parts, features.blocks, kept),
            labelled.persons,
            labelled.cameras,
            model,
            features.fingerprint,
            choose="reg" not in params,
        )
        choice = fit_landmark_model(job, store.folder, executor)
    else:
        model.fit(features.features[kept], labelled.persons, labelled.cameras)
    if chosen is not None:
        chosen.learner.candidates_ = chosen.candidates
    why_not: str | None = "it was not asked for"
    if calibrate and getattr(model_learner, "landmarks", None) is not None:
        why_not = "it was learned through landmarks, whose folds would not fit in memory"
    elif calibrate:
        rows = features.features[kept]
        why_not = add_calibration(model, rows, labelled.persons, labelled.cameras)
    people = len(np.unique(labelled.persons))
    return Fitted(model, people, len(labelled), features.failures, choice, why_not)


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
            f"none of the {len(sightings)} sightings has a person, so a model cannot be "
            "trained; name people by folders <camera>/<person>/* or in a CSV's person column"
        )
    return rows
