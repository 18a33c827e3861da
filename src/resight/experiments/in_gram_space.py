"""Trials in Gram space: learners fitted on each split from inner products computed once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.runner import over_splits
from resight.experiments.trials import Trial, rank_directions
from resight.learners._base import squared_euclidean
from resight.learners.euclidean import Euclidean
from resight.plans import FROM_TRAINING, Plan
from resight.protocols import Protocol, Split
from resight.registry import AUTO
from resight.tuning.cross_validation import choose
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import Between, Floats, GramSpace, Products, Rows, between_test_rows
from resight.tuning.search import Search, variants_of


def measure(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plans: Sequence[Plan],
    *,
    mirrored: GramSpace | None = None,
    folder: Path | None = None,
    n_jobs: int = 1,
    title: str = "splits",
) -> list[list[Trial]]:
    """Measure each plan on each split; returns a list of trials for each plan.

    `mirrored` is the space of features averaged over mirror images, among which `auto` may
    choose; `folder` keeps finished splits, see `over_splits`.
    """

    def trials(split: Split) -> list[dict[str, Any]]:
        measured = measure_split(sightings, protocol, space, split, plans, mirrored)
        return [trial.to_dict() for trial in measured]

    found = over_splits(trials, protocol.splits, folder, n_jobs=n_jobs, title=title)
    return [[Trial.from_dict(one) for one in of_plan] for of_plan in zip(*found, strict=True)]


def measure_split(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    split: Split,
    plans: Sequence[Plan],
    mirrored: GramSpace | None = None,
) -> list[Trial]:
    """Measure all plans on one split; they share its inner products."""
    known: dict[tuple[bool, bool, bool], Products] = {}
    return [
        _auto_trial(sightings, protocol, space, split, plan, mirrored)
        if plan.learner == AUTO
        else _trial(sightings, protocol, space, split, plan, known)
        for plan in plans
    ]


def _trial(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    split: Split,
    plan: Plan,
    known: dict[tuple[bool, bool, bool], Products],
) -> Trial:
    start = time.perf_counter()
    persons, cameras = sightings.persons[split.train], sightings.cameras[split.train]
    params, table = dict(plan.params), None
    if plan.candidates:
        choice = choose(space, split.train, persons, cameras, plan.candidates, plan.n_folds)
        params |= choice.best.params()
        table = choice.table()
    learner = plan.spec.make(**params)
    key = (plan.normalize, isinstance(learner, Euclidean), plan.rerank in FROM_TRAINING)
    if key not in known:
        wanted = _rows_to_rank(split, plan)
        known[key] = space.products(split.train, wanted, normalize=key[0], between_test=key[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        between = between_test_rows(learner, known[key], persons, cameras)
    seconds = time.perf_counter() - start
    rankings = rank_directions(sightings, protocol, split, between, plan.rerank)
    said = dict.fromkeys(str(warning.message) for warning in caught)
    return Trial(rankings, params, seconds, table, tuple(said))


def _auto_trial(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    split: Split,
    plan: Plan,
    mirrored: GramSpace | None,
) -> Trial:
    """Choose everything on the training people of this split, in its own Gram space."""
    start, params = time.perf_counter(), {"budget": plan.budget, **plan.params}
    if mirrored is not None:
        space, params = GramSpace.joined([space, mirrored]), {**params, "mirrored": True}
    persons, cameras = sightings.persons[split.train], sightings.cameras[split.train]
    unknown = np.setdiff1d(sightings.cameras[split.test], cameras)
    if len(unknown):
        raise InputError(
            f"camera {unknown[0]} is tested but has no labelled people to learn from; label some "
            "there, or leave the camera out"
        )
    search = Search(space, split.train, persons, cameras, **params)
    setting = search.run()
    variants = variants_of(space, params.get("mirrored", False))
    wanted = _rows_to_rank(split, plan)
    fold = Fold(variants[setting.variant], split.train, wanted, search.persons, search.cameras)
    embedding = fold.embed(setting)
    seconds = time.perf_counter() - start
    rankings = rank_directions(sightings, protocol, split, _within(embedding), plan.rerank)
    table = [tried.as_dict() for tried in search.tried]
    stopped = () if search.stopped is None else (search.stopped,)
    return Trial(rankings, setting.as_dict(), seconds, table, stopped)


def _rows_to_rank(split: Split, plan: Plan) -> Rows:
    """Test rows, and training rows after them where the re-ranking looks at those."""
    with_training = plan.rerank in FROM_TRAINING
    return np.concatenate([split.test, split.train]) if with_training else split.test


def _within(embedding: Floats) -> Between:
    return lambda a, b: squared_euclidean(embedding[a], embedding[b])
