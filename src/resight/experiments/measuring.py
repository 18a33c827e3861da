"""An evaluation at work: plans measured on feature sets, in Gram space or out of core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments import in_gram_space, out_of_core
from resight.experiments.confidence import confidence
from resight.experiments.learning_curve import learning_curve
from resight.experiments.results import Run, environment
from resight.experiments.runner import FinishedSplits
from resight.experiments.trials import Trial
from resight.features.rows import GRAM_LIMIT, FeatureRows
from resight.features.store import Features
from resight.plans import Plan
from resight.protocols import Protocol
from resight.tuning.gram import gram_space
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

    def diagnose(
        self, document: dict[str, Any], calibrate: bool, curve: bool | Sequence[int]
    ) -> None:
        """Put ``confidence`` and ``learning_curve`` into the runs of a result document.

        Re-ranked runs have neither: their order is not that of distances.
        """
        runs = iter(document["runs"])
        sizes = None if isinstance(curve, bool) else curve
        for given in self.feature_sets if calibrate or curve else ():
            if given.source.gram_bytes > GRAM_LIMIT:
                raise InputError(
                    "--calibrate and --curve fit many models in Gram space, for which "
                    f"{given.source.size} are too many; evaluate a part of the people"
                )
            space = gram_space(given.features, given.usable)
            for plan in self.plans:
                run, where = next(runs), (self.sightings, self.protocol, space, plan)
                if calibrate and plan.rerank is None:
                    folder = self._folder(given, [plan], "confidence")
                    run["confidence"] = confidence(*where, folder=folder, n_jobs=self.n_jobs)
                if curve and plan.rerank is None:
                    folder = self._folder(given, [plan], "learning curve", repr(sizes))
                    run["learning_curve"] = learning_curve(
                        *where, sizes, folder=folder, n_jobs=self.n_jobs
                    )

    def _folder(self, given: FeatureSet, plans: Sequence[Plan], *identity: str) -> Path:
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
        found = {id(plan): self._out_of_core(given, plan) for plan in large}
        if small:
            found |= zip(map(id, small), self._in_gram_space(given, small), strict=True)
        return [found[id(plan)] for plan in self.plans]

    def _in_gram_space(self, given: FeatureSet, plans: Sequence[Plan]) -> list[list[Trial]]:
        trainable = None  # rows whose inner products with all others are needed: all of them
        if all(plan.learner != "euclidean" for plan in plans):  # which compares test rows directly
            trainable = np.unique(np.concatenate([split.train for split in self.protocol.splits]))
        space = partial(gram_space, usable=given.usable, trainable=trainable)
        return in_gram_space.measure(
            self.sightings,
            self.protocol,
            space(given.features),
            plans,
            mirrored=None if given.mirrored is None else space(given.mirrored),
            folder=self._folder(given, plans),
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
            folder=self._folder(given, [plan]),
            threads=self.n_jobs,
            executor=self.executor,
            scratch=None if self.executor is None else self.finished.store,
            title=f"splits, {plan.learner}",
        )
