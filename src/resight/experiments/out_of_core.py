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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.evaluation.reranking import cross_view_reciprocal
from resight.experiments.runner import over_splits
from resight.experiments.trials import Ranked, Trial, ranked
from resight.features.rows import GRAM_LIMIT, FeatureRows
from resight.kernels import NON_NEGATIVE
from resight.learners._base import squared_euclidean
from resight.learners.kxqda import KXQDA
from resight.models.choosing import choose_candidate, too_many
from resight.models.landmark_fitting import LandmarkJob, fit_landmark_model
from resight.models.model import Model
from resight.plans import Plan
from resight.protocols import Protocol, Split
from resight.registry import AUTO
from resight.tuning.gram import Rows
from resight.workers.executors import Executor


def exceeds_gram_space(plan: Plan, source: FeatureRows) -> bool:
    """Tell whether a plan must be measured from the features."""
    return (
        source.gram_bytes > GRAM_LIMIT
        or plan.params.get("landmarks") is not None
        or plan.params.get("kernel") in NON_NEGATIVE
    )


def measure(
    sightings: Sightings,
    protocol: Protocol,
    source: FeatureRows,
    plan: Plan,
    *,
    fingerprint: str,
    folder: Path | None = None,
    threads: int = 1,
    executor: Executor | None = None,
    scratch: Path | None = None,
    title: str = "splits",
) -> list[Trial]:
    """Measure a plan on each split, one after the other; BLAS has `threads` threads.

    `executor` sums up the chunks of landmark fits in the folder `scratch`, which its workers
    must see; without it this process does. `folder` keeps finished splits, see `over_splits`.
    """

    def trial(split: Split) -> dict[str, Any]:
        params = dict(plan.params)
        work = _SplitFit(sightings, protocol, source, split, plan, fingerprint, params)
        with nullcontext(scratch) if scratch else tempfile.TemporaryDirectory() as room:
            return work.trial(Path(room), executor).to_dict()

    found = over_splits(trial, protocol.splits, folder, threads=threads, title=title)
    return [Trial.from_dict(one) for one in found]


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


@dataclass
class _SplitFit:
    """One plan on one split; what is chosen is put into `params` and `table`."""

    sightings: Sightings
    protocol: Protocol
    source: FeatureRows
    split: Split
    plan: Plan
    fingerprint: str  # of the features
    params: dict[str, Any]
    table: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        train = self.split.train
        self.labels = self.sightings.persons[train], self.sightings.cameras[train]

    def trial(self, scratch: Path, executor: Executor | None) -> Trial:
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = self._fitted(scratch, executor)
            rankings = tuple(
                self._ranked(model, query, gallery) for query, gallery in self.split.directions
            )
        seconds = time.perf_counter() - start
        said = dict.fromkeys(str(warning.message) for warning in caught)
        return Trial(rankings, self.params, seconds, self.table, tuple(said))

    def _fitted(self, scratch: Path, executor: Executor | None) -> Model:
        training = self.source.select(self.split.train)
        learner = self.plan.spec.make(**self.params)
        if isinstance(learner, KXQDA):
            learner.landmarks = learner.wanted_landmarks(len(training))
            if learner.landmarks is not None:
                return self._fitted_by_landmarks(training, learner, scratch, executor)
        if self.plan.candidates:
            decision = choose_candidate(self.plan, training, *self.labels)
            self.params |= decision.chosen
            self.table = decision.candidates
            learner.set_params(**self.params)
            if decision.note is not None:
                warnings.warn(decision.note, UserWarning, stacklevel=2)
        if "precision" in learner.get_params():
            learner.set_params(precision="float32")  # as in Gram space
        model = Model((), learner, normalize=False)
        if self.plan.normalize:
            model.normalizer = training.normalizer()
        rows = training.read()
        for start in range(0, len(rows), 2048):  # in place: one copy of the training rows is enough
            rows[start : start + 2048] = model.normalized(rows[start : start + 2048])
        learner.fit(rows, *self.labels)
        return model

    def _fitted_by_landmarks(
        self, training: FeatureRows, learner: KXQDA, scratch: Path, executor: Executor | None
    ) -> Model:
        model = Model((), learner, normalize=self.plan.normalize)
        choose = bool(self.plan.candidates)
        job = LandmarkJob(training, *self.labels, model, self.fingerprint, choose=choose)
        choice = fit_landmark_model(job, scratch, executor)
        if choice is not None:
            self.params |= {"reg": choice.best.reg, "reg_form": choice.best.reg_form}
            self.table = choice.table()
        return model

    def _ranked(self, model: Model, query: Rows, gallery: Rows) -> Ranked:
        asked = np.concatenate(
            [model.embed(block) for block in self.source.select(query).in_blocks()]
        )
        distances = np.concatenate(
            [
                squared_euclidean(asked, model.embed(block))
                for block in self.source.select(gallery).in_blocks()
            ],
            axis=1,
        )
        if self.plan.rerank is not None:
            distances = cross_view_reciprocal(distances)
        return ranked(self.sightings, self.protocol, query, gallery, distances)
