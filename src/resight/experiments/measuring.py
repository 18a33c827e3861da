"""An evaluation at work: plans measured on feature sets, in Gram space or out of core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.experiments import in_gram_space, out_of_core
from resight.experiments.results import Run, environment
from resight.experiments.runner import FinishedSplits
from resight.experiments.trials import Trial
from resight.features.rows import FeatureRows
from resight.features.store import Features
from resight.plans import Plan
from resight.protocols import Protocol
from resight.tuning.gram import Rows, gram_space
from resight.workers.executors import Executor

# Columns of sightings that rankings depend on.
_LABELS = ("persons", "cameras", "roles", "sequences", "sites")


class FeatureSet(NamedTuple):
    """Features that all plans are measured on."""

    features: Features
    mirrored: Features | None  # averaged over mirror images, where `auto` may choose
    usable: NDArray[np.bool_]  # the rows of the evaluated sightings

    @property
    def source(self) -> FeatureRows:
        """The features of the evaluated sightings."""
        return FeatureRows(self.features.parts, self.features.blocks, np.flatnonzero(self.usable))


@dataclass(frozen=True)
class Evaluation:
    """What is measured on which features, and by how many processes."""

    sightings: Sightings
    protocol: Protocol
    plans: Sequence[Plan]
    feature_sets: Sequence[FeatureSet]
    finished: FinishedSplits
    n_jobs: int = 1
    executor: Executor | None = None

    def runs(self) -> list[Run]:
        """Measure every plan on every feature set."""
        return [
            Run(plan, given.features.descriptors, trials)
            for given in self.feature_sets
            for plan, trials in zip(self.plans, self._trials(given), strict=True)
        ]

    def folder(self, given: FeatureSet, plans: Sequence[Plan], *identity: str) -> Path:
        """Return where splits are kept that were measured with some plans on a feature set."""
        used = [one.fingerprint for one in (given.features, given.mirrored) if one is not None]
        labels = [getattr(self.sightings, name).tolist() for name in _LABELS]
        facts = [labels, [asdict(plan) for plan in plans], environment()]
        text = json.dumps(facts, sort_keys=True, default=repr)
        return self.finished.folder(self.protocol.fingerprint, text, *used, *identity)

    def _trials(self, given: FeatureSet) -> list[list[Trial]]:
        """Measure all plans on a feature set, in their order."""
        large = [plan for plan in self.plans if out_of_core.exceeds_gram_space(plan, given.source)]
        small = [plan for plan in self.plans if plan not in large]
        for plan in large:
            out_of_core.check(plan, given.source)
        found: dict[int, list[Trial]] = {}
        if small:
            found |= zip(map(id, small), self._in_gram_space(given, small), strict=True)
        found |= {id(plan): self._out_of_core(given, plan) for plan in large}
        return [found[id(plan)] for plan in self.plans]

    def _in_gram_space(self, given: FeatureSet, plans: Sequence[Plan]) -> list[list[Trial]]:
        trainable = _trainable(self.protocol, plans)
        space = partial(gram_space, usable=given.usable, trainable=trainable)
        return in_gram_space.measure(
            self.sightings,
            self.protocol,
            space(given.features),
            plans,
            mirrored=None if given.mirrored is None else space(given.mirrored),
            folder=self.folder(given, plans),
            n_jobs=self.n_jobs,
            title=f"splits, {'+'.join(given.features.descriptors)}",
        )

    def _out_of_core(self, given: FeatureSet, plan: Plan) -> list[Trial]:
        return out_of_core.measure(
            self.sightings,
            self.protocol,
            given.source,
            plan,
            fingerprint=given.features.fingerprint,
            folder=self.folder(given, [plan]),
            threads=self.n_jobs,
            executor=self.executor,
            scratch=None if self.executor is None else self.finished.store,
            title=f"splits, {plan.learner}",
        )


def _trainable(protocol: Protocol, plans: Sequence[Plan]) -> Rows | None:
    """Rows whose inner products with all others are needed: None for all of them."""
    if any(plan.learner == "euclidean" for plan in plans):
        return None  # it compares test rows directly
    return np.unique(np.concatenate([split.train for split in protocol.splits]))
