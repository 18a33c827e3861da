"""Fit one model on all labelled sightings: what `resight fit` saves and a gallery uses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.features.rows import FeatureRows
from resight.features.store import Failure, Features, FeatureStore
from resight.features.vectors import own_vectors
from resight.learners.kxqda import KXQDA
from resight.models.auto_fitting import choose_learner
from resight.models.calibrating import add_calibration
from resight.models.landmark_fitting import LandmarkJob, fit_landmark_model
from resight.models.model import Model
from resight.models.training import Training
from resight.registry import learner_spec
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_MIRROR
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
    sightings: Sightings | None = None,
    *,
    descriptor: str = "gog+lomo-dagger",
    features: Features | str | Path | None = None,
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
    sightings : Sightings, optional
        Not needed where the file `features` holds people and cameras.
    descriptor : str
        Names joined by ``+``.
    features : Features or path, optional
        Own vectors instead of descriptors, one row for each sighting.
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
    >>> resight.fit(features="vectors.csv").save("model")  # doctest: +SKIP
    """
    kept_in = store if isinstance(store, FeatureStore) else FeatureStore(store)
    vectors = None
    if features is not None:
        vectors, sightings = own_vectors(features, sightings)
    elif sightings is None:
        raise InputError("nothing to fit: give sightings, or features with people and cameras")
    with local(jobs) if executor is None else nullcontext(executor) as workers:
        fitted = fit_model(
            sightings,
            kept_in,
            descriptor,
            learner,
            dict(params or {}),
            features=vectors,
            mirror=mirror,
            executor=workers,
            calibrate=calibrate,
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
    features: Features | None = None,
    mirror: bool = False,
    executor: Executor | None = None,
    calibrate: bool = True,
) -> Fitted:
    """Fit a learner on every labelled sighting that has a vector, and calibrate it.

    Which sightings count is said by `training_rows`. Own vectors (`features`, one row for each
    sighting) take the place of `descriptors`. With `landmarks` among the parameters of kxqda the
    training rows are never all in memory; unless `reg` is given too, it is chosen over people.
    """
    spec = learner_spec(learner)
    fitting = spec.make(**params)
    if features is None:
        mirrors = AUTO_MIRROR if isinstance(fitting, AutoKXQDA) and not mirror else (mirror,)
        describe = partial(_described, store, descriptors, executor)
        training = Training.described(sightings, describe, mirrors)
    else:
        training = Training.own(sightings, features)
    candidates = None
    if isinstance(fitting, AutoKXQDA):
        fitting, mirror, candidates = choose_learner(fitting, training, mirror)
    used = training.variants[-1 if mirror else 0]
    made_by = used.made_by if features is None else ()
    model = Model(made_by, fitting, mirror=mirror, normalize=spec.normalizes(params))
    choice = _fit(model, training, used, "reg" not in params, store.folder, executor)
    if candidates is not None:
        fitting.candidates_ = candidates
    why_not: str | None = "it was not asked for"
    if calibrate and getattr(fitting, "landmarks", None) is not None:
        why_not = "it was learned through landmarks, whose folds would not fit in memory"
    elif calibrate:
        why_not = add_calibration(model, used.features[training.rows], *training.labels)
    people = len(np.unique(training.sightings.persons))
    return Fitted(model, people, len(training.rows), used.failures, choice, why_not)


def _described(
    store: FeatureStore, names: str, executor: Executor | None, of: Sightings, mirror: bool
) -> Features:
    return store.ensure(of, names, mirror, executor, on_error="collect")


def _fit(
    model: Model,
    training: Training,
    used: Features,
    choose_reg: bool,
    scratch: Path,
    executor: Executor | None,
) -> Choice | None:
    """Fit a model, through landmarks where they are asked for or needed."""
    learner = model.learner
    if isinstance(learner, KXQDA):
        learner.landmarks = learner.wanted_landmarks(len(training.rows))
        if learner.landmarks is not None:
            rows = FeatureRows(used.parts, used.blocks, training.rows)
            job = LandmarkJob(rows, *training.labels, model, used.fingerprint, choose=choose_reg)
            return fit_landmark_model(job, scratch, executor)
    model.fit(used.features[training.rows], *training.labels)
    return None
