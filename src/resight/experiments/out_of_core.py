"""Splits too large for Gram space, landmarks, and kernels that are no function of inner products.

Gram space holds the inner products of all sightings with all others. Here a learner is fitted on
the normalised features of the training rows, and embeddings of the gallery are made and compared
some at a time.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.evaluation.reranking import cross_view_reciprocal
from resight.experiments.trials import Trial, ranked, trials_over
from resight.features.rows import BLOCK, GRAM_LIMIT, FeatureRows
from resight.kernels import NON_NEGATIVE
from resight.learners._base import squared_euclidean
from resight.learners.kxqda import KXQDA
from resight.models.choosing import choose_candidate, too_many
from resight.models.landmark_fitting import LandmarkJob, fit_landmark_model
from resight.models.model import Model
from resight.plans import Plan
from resight.protocols import Protocol, Split
from resight.registry import AUTO
from resight.tuning.gram import Floats
from resight.workers.executors import Executor


def exceeds_gram_space(plan: Plan, source: FeatureRows) -> bool:
    """Tell whether a plan must be measured from the features."""
    return (
        source.gram_bytes > GRAM_LIMIT
        or plan.params.get("landmarks") is not None
        or plan.params.get("kernel") in NON_NEGATIVE
    )


def check(plan: Plan, source: FeatureRows) -> None:
    """Refuse what cannot be measured from the features."""
    if plan.learner == AUTO:
        raise too_many(source)
    if plan.rerank not in (None, "cross-view"):
        raise InputError(
            f"{plan.rerank} re-ranking needs all distances within the gallery, for which "
            f"{source.size} are too many, or landmarks or a chi-square kernel are used; leave it "
            "out, or use cross-view"
        )


def measure(
    sightings: Sightings,
    protocol: Protocol,
    source: FeatureRows,
    plan: Plan,
    *,
    fingerprint: str,
    executor: Executor | None = None,
    scratch: Path | None = None,
    **how: Any,
) -> list[Trial]:
    """Measure a plan on each split, one after the other; `how` is what `over_splits` takes.

    `executor` sums up the chunks of landmark fits in the folder `scratch`, which its workers
    must see; without it this process does.
    """

    def trials(split: Split) -> list[Trial]:
        start, training = time.perf_counter(), source.select(split.train)
        labels = sightings.persons[split.train], sightings.cameras[split.train]
        with (
            nullcontext(scratch) if scratch else tempfile.TemporaryDirectory() as room,
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            fitted = fit_on(training, *labels, plan, fingerprint, Path(room), executor)
            rankings = []
            for query, gallery in split.directions:
                D = _distances(fitted.model, source.select(query), source.select(gallery))
                D = D if plan.rerank is None else cross_view_reciprocal(D)
                rankings.append(ranked(sightings, protocol, query, gallery, D))
        seconds, said = time.perf_counter() - start, dict.fromkeys(str(w.message) for w in caught)
        return [Trial(tuple(rankings), fitted.params, seconds, fitted.table, tuple(said))]

    return trials_over(trials, protocol.splits, **how)[0]


class Fitted(NamedTuple):
    """A model, with all parameters of its learner that were given or chosen."""

    model: Model
    params: dict[str, Any]
    table: list[dict[str, Any]] | None = None  # how each candidate scored


def fit_on(
    training: FeatureRows,
    persons: NDArray[Any],
    cameras: NDArray[Any],
    plan: Plan,
    fingerprint: str,
    scratch: Path,
    executor: Executor | None = None,
) -> Fitted:
    """Fit a plan on stored features, choosing among its candidates if it has any."""
    params, labels = dict(plan.params), (persons, cameras)
    learner = plan.spec.make(**params)
    if "precision" in learner.get_params():
        learner.set_params(precision=params.get("precision", "float32"))  # as in Gram space
    model = Model((), learner, normalize=plan.normalize)
    if isinstance(learner, KXQDA):
        learner.landmarks = learner.wanted_landmarks(len(training))
        if learner.landmarks is not None:
            choosing = bool(plan.candidates)
            job = LandmarkJob(training, *labels, model, fingerprint, choose=choosing)
            choice = fit_landmark_model(job, scratch, executor)
            if choice is None:
                return Fitted(model, params)
            best = {"reg": choice.best.reg, "reg_form": choice.best.reg_form}
            return Fitted(model, params | best, choice.table())
    table = None
    if plan.candidates:
        decision = choose_candidate(plan, training, *labels)
        params, table = params | decision.chosen, decision.candidates
        learner.set_params(**decision.chosen)
        if decision.note is not None:
            warnings.warn(decision.note, UserWarning, stacklevel=2)
    if model.normalizer is not None:
        model.normalizer = training.normalizer()
    rows = training.read()
    for start in range(0, len(rows), BLOCK):  # in place: one copy of the training rows is enough
        rows[start : start + BLOCK] = model.normalized(rows[start : start + BLOCK])
    learner.fit(rows, *labels)
    return Fitted(model, params, table)


def _distances(model: Model, queries: FeatureRows, gallery: FeatureRows) -> Floats:
    """Return the distances (n_query, n_gallery), reading some rows at a time."""
    asked = np.concatenate([model.embed(block) for block in queries.in_blocks()])
    distances = np.empty((len(queries), len(gallery)))
    for start, block in zip(range(0, len(gallery), BLOCK), gallery.in_blocks(), strict=True):
        distances[:, start : start + BLOCK] = squared_euclidean(asked, model.embed(block))
    return distances
