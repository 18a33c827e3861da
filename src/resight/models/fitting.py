"""Fit one model on all labelled sightings: what `resight fit` saves and a gallery uses."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from resight._progress import log
from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, seen_by_two
from resight.descriptors._base import Descriptor
from resight.errors import InputError
from resight.features.rows import BLOCK, FeatureRows
from resight.features.store import Failure, Features, FeatureStore
from resight.features.vectors import own_vectors
from resight.learners.kxqda import KXQDA
from resight.learners.normalizer import BlockNormalizer
from resight.models.calibrating import add_calibration, calibrate_on_new, signature
from resight.models.card import model_card
from resight.models.landmark_fitting import LandmarkJob
from resight.models.model import Model
from resight.models.training import Training, choose_auto, choose_candidate, training_rows
from resight.plans import DESCRIPTOR, MIRROR, Plan, budget_for, learner_for, plan_of
from resight.registry import AUTO
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_MIRROR
from resight.tuning.cross_validation import Decision
from resight.workers.executors import Executor, local


@dataclass(frozen=True)
class Fitted:
    """A model and what it was learned from."""

    model: Model
    n_people: int
    n_sightings: int
    failures: tuple[Failure, ...]
    decision: Decision | None = None  # what was chosen on the training people
    uncalibrated: str | None = None  # why the model states no probabilities, if it does not


def fit(
    sightings: Sightings | None = None,
    *,
    descriptor: str = DESCRIPTOR,
    features: Features | str | Path | None = None,
    learner: str | None = None,
    params: Mapping[str, object] | None = None,
    mirror: bool = MIRROR,
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
        A learner as `evaluate` takes it, such as ``"kxqda:cv"``, and its parameters. By default
        that of `resight.plans`, which chooses its setting.
    mirror : bool
        Average descriptors over mirror images. The learner `auto` chooses, unless this is set.
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
    vectors, sightings = own_vectors(features, sightings, to="fit")
    word = learner_for(len(training_rows(sightings))) if learner is None else learner
    plan = plan_of(word, params or {})
    with local(jobs) if executor is None else nullcontext(executor) as workers:
        fitted = fit_model(
            sightings,
            kept_in,
            descriptor,
            plan,
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
    plan: Plan,
    *,
    features: Features | None = None,
    mirror: bool = False,
    executor: Executor | None = None,
    calibrate: bool = True,
) -> Fitted:
    """Fit a plan on every labelled sighting that has a vector, and calibrate the model.

    Which sightings count is said by `training_rows`. Own vectors (`features`, one row for each
    sighting) take the place of `descriptors`. With `landmarks` among the parameters of kxqda the
    training rows are never all in memory.
    """
    if features is None:
        mirrors = AUTO_MIRROR if plan.learner == AUTO and not mirror else (mirror,)
        describe = partial(
            store.ensure, descriptor=descriptors, executor=executor, on_error="collect"
        )
        training = Training.described(sightings, describe, mirrors, plan.spec.labels)
    else:
        training = Training.own(sightings, features, plan.spec.labels)
    made_by = training.variants[0].made_by if features is None else ()
    model, decision = fit_plan(
        plan, training, made_by, mirror=mirror, scratch=store.folder, executor=executor
    )
    if decision is not None:
        log.info("%s %s", plan.word, decision.sentence)
    used = training.variants[-1 if model.mirror else 0]
    known = training.sightings.persons != UNKNOWN_PERSON
    persons, cameras = (names[known] for names in training.labels)
    why_not: str | None = "it was not asked for"
    if calibrate:
        rows = FeatureRows(used.parts, used.blocks, training.rows[known])
        heights = training.sightings.select(known).heights() if features is None else None
        why_not = add_calibration(model, rows, persons, cameras, heights)
    people = len(np.unique(persons))
    fitted = Fitted(model, people, len(training.rows), used.failures, decision, why_not)
    model.card = model_card(fitted, training)
    return fitted


def fit_plan(
    plan: Plan,
    training: Training,
    made_by: Sequence[str | Descriptor] = (),
    *,
    mirror: bool = False,
    scratch: Path = Path(),
    executor: Executor | None = None,
) -> tuple[Model, Decision | None]:
    """Fit a model on training rows; what the plan leaves open is chosen on them first.

    `made_by` are the descriptors of the vectors, none for own ones; `executor` sums up chunks of a
    landmark model in the folder `scratch`.
    """
    learner, decision = plan.spec.make(**plan.params), None
    if isinstance(learner, AutoKXQDA):
        people = len(seen_by_two(*training.labels))
        learner.set_params(budget=plan.params.get("budget", budget_for(people)))
        learner, mirror, decision = choose_auto(learner, training, mirror)
    used = training.variants[-1 if mirror else 0]
    rows = FeatureRows(used.parts, used.blocks, training.rows)
    landmarks = None
    if isinstance(learner, KXQDA):
        learner.landmarks = landmarks = learner.wanted_landmarks(len(rows))
        if landmarks is not None and "precision" not in plan.params:
            learner.precision = "float32"  # as `evaluate` measures it
    if plan.candidates and landmarks is None:
        decision = choose_candidate(plan, rows, *training.labels)
        learner.set_params(**decision.chosen)
    normalizes = plan.spec.normalizes(learner.get_params())
    normalizer = BlockNormalizer(used.blocks) if normalizes else False
    model = Model(made_by, learner, mirror=mirror, normalize=normalizer)
    if landmarks is not None:
        choosing = bool(plan.candidates)
        job = LandmarkJob(rows, *training.labels, model, used.fingerprint, choose=choosing)
        return model, job.fit(scratch, executor)
    if normalizes:
        model.normalizer = rows.normalizer()
    features = rows.read()
    for start in range(0, len(rows), BLOCK):  # in place: one copy of the rows is enough
        features[start : start + BLOCK] = model.normalized(features[start : start + BLOCK])
    learner.fit(features, *training.labels)
    if isinstance(learner, AutoKXQDA) and decision is not None:
        learner.candidates_ = decision.candidates
    return model, decision


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
    rows = features.features[features.usable]
    labels = training.persons[features.usable], training.cameras[features.usable]
    made, why_not = calibrate_on_new(model, rows, *labels)
    model.add_people(rows, *labels)
    if made is not None:
        known = signature(model, FeatureRows([rows], (rows.shape[1],)))
        model.calibration = replace(made, trained=known)
    people, seen = len(learner.persons_), learner.n_sightings
    return Fitted(model, people, seen, features.failures, uncalibrated=why_not)
