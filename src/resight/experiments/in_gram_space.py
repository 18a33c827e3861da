"""Trials in Gram space: learners fitted on each split from inner products computed once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.runner import over_splits
from resight.experiments.trials import Trial, rank_directions
from resight.plans import FROM_TRAINING, Plan
from resight.protocols import Protocol, Split
from resight.registry import AUTO
from resight.tuning.cross_validation import choose
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import GramSpace, Products, Rows, between_test_rows, within
from resight.tuning.search import Search, variants_of


def measure(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plans: Sequence[Plan],
    *,
    mirrored: GramSpace | None = None,
    **how: Any,
) -> list[tuple[dict[str, Any], ...]]:
    """Measure each plan on each split; returns the trials of each plan (`Trial.to_dict`).

    `mirrored` is the space of features averaged over mirror images, among which `auto` may
    choose; `how` is what `over_splits` takes.
    """

    def trials(split: Split) -> list[dict[str, Any]]:
        found = SplitRunner(sightings, protocol, space, split, mirrored).measure(plans)
        return [trial.to_dict(sightings) for trial in found]

    return list(zip(*over_splits(trials, protocol.splits, **how), strict=True))


@dataclass
class SplitRunner:
    """One split, on which plans share inner products; `mirrored` is as in `measure`."""

    sightings: Sightings
    protocol: Protocol
    space: GramSpace
    split: Split
    mirrored: GramSpace | None = None

    def __post_init__(self) -> None:
        train = self.split.train
        self.where = self.sightings, self.protocol, self.split
        self.labels = self.sightings.persons[train], self.sightings.cameras[train]
        self._known: dict[tuple[bool, bool, bool], Products] = {}

    def measure(self, plans: Sequence[Plan]) -> list[Trial]:
        """Return a trial of each plan, in their order."""
        return [
            self._auto_trial(plan) if plan.learner == AUTO else self._trial(plan) for plan in plans
        ]

    def _rows_to_rank(self, plan: Plan) -> Rows:
        """Test rows, and training rows after them where the re-ranking looks at those."""
        more = [self.split.train] if plan.rerank in FROM_TRAINING else []
        return np.concatenate([self.split.test, *more])

    def _trial(self, plan: Plan) -> Trial:
        start, params, table = time.perf_counter(), dict(plan.params), None
        train, wanted = self.split.train, self._rows_to_rank(plan)
        if plan.candidates:
            decision = choose(self.space, train, *self.labels, plan.candidates, plan.n_folds)
            params, table = params | decision.chosen, decision.candidates
        learner = plan.spec.make(**params)
        key = (plan.normalize, not learner.learns, plan.rerank in FROM_TRAINING)
        if key not in self._known:
            products = self.space.products(train, wanted, normalize=key[0], between_test=key[1])
            self._known[key] = products
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            between = between_test_rows(learner, self._known[key], *self.labels)
        seconds = time.perf_counter() - start
        said = dict.fromkeys(str(warning.message) for warning in caught)
        rankings = rank_directions(*self.where, between, plan.rerank)
        return Trial(rankings, params, seconds, table, tuple(said))

    def _auto_trial(self, plan: Plan) -> Trial:
        """Choose everything on the training people of this split, in its own Gram space."""
        start, params = time.perf_counter(), {"budget": plan.budget, **plan.params}
        space, train, test = self.space, self.split.train, self.split.test
        if self.mirrored is not None:
            space, params = GramSpace.joined([space, self.mirrored]), {**params, "mirrored": True}
        unknown = np.setdiff1d(self.sightings.cameras[test], self.labels[1])
        if len(unknown):
            raise InputError(
                f"camera {unknown[0]} is tested but has no labelled people to learn from; label "
                "some there, or leave the camera out"
            )
        search = Search(space, train, *self.labels, **params)
        setting = search.run()
        variant = variants_of(space, params.get("mirrored", False))[setting.variant]
        fold = Fold(variant, train, self._rows_to_rank(plan), search.persons, search.cameras)
        embedding = fold.embed(setting)
        seconds = time.perf_counter() - start
        table = [tried.as_dict() for tried in search.tried]
        stopped = () if search.stopped is None else (search.stopped,)
        rankings = rank_directions(*self.where, within(embedding), plan.rerank)
        return Trial(rankings, setting.as_dict(), seconds, table, stopped)
