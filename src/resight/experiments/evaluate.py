"""The main job: sightings and a protocol in, a result document out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.executors import Executor
from resight.experiments.features import Failure, Features, FeatureStore
from resight.experiments.gram import GramSpace
from resight.experiments.results import Run, document
from resight.experiments.runner import Plan, run
from resight.protocols import Protocol, for_dataset, from_file


@dataclass(frozen=True)
class Evaluation:
    """Everything an evaluation found."""

    sightings: Sightings
    protocol: Protocol
    runs: list[Run]
    result: dict[str, Any]
    failures: tuple[Failure, ...] = ()


def evaluate(
    sightings: Sightings,
    store: FeatureStore,
    descriptor_sets: Sequence[str],
    plans: Sequence[Plan],
    *,
    protocol: str | None = None,
    splits: str | None = None,
    mirror: bool = False,
    n_jobs: int = 1,
    executor: Executor | None = None,
) -> Evaluation:
    """Extract descriptors, fit learners on each split and rank.

    Unreadable images are left out of the evaluation and returned as `failures`.
    """
    found = {
        names: store.ensure(sightings, names, mirror, executor, on_error="collect")
        for names in descriptor_sets
    }
    usable = np.logical_and.reduce([features.usable for features in found.values()])
    if not usable.any():
        first = next(iter(found.values())).failures[0]
        raise InputError(f"no image could be described; the first: {first.path}: {first.reason}")
    kept = sightings.select(np.flatnonzero(usable))
    chosen = from_file(splits, kept) if splits else for_dataset(kept, protocol)
    runs = []
    for names, features in found.items():
        space = gram_space(features, usable)
        trials = run(kept, chosen, space, plans, n_jobs=n_jobs, title=f"splits, {names}")
        runs += [
            Run(plan, features.descriptors, of_plan)
            for plan, of_plan in zip(plans, trials, strict=True)
        ]
    fingerprints = {names: features.fingerprint for names, features in found.items()}
    facts = {"sightings": len(kept), "fingerprint": fingerprints, "mirror": mirror}
    failures = tuple({f.row: f for part in found.values() for f in part.failures}.values())
    return Evaluation(kept, chosen, runs, document(kept, chosen, runs, facts), failures)


def evaluate_vectors(
    sightings: Sightings,
    features: Features,
    plans: Sequence[Plan],
    *,
    protocol: str | None = None,
    splits: str | None = None,
    n_jobs: int = 1,
) -> Evaluation:
    """Evaluate learners on a user's own vectors, one row for each sighting."""
    chosen = from_file(splits, sightings) if splits else for_dataset(sightings, protocol)
    trials = run(sightings, chosen, gram_space(features), plans, n_jobs=n_jobs)
    runs = [
        Run(plan, features.descriptors, of_plan)
        for plan, of_plan in zip(plans, trials, strict=True)
    ]
    facts = {
        "sightings": len(sightings),
        "fingerprint": {"+".join(features.descriptors): features.fingerprint},
        "mirror": False,
    }
    return Evaluation(sightings, chosen, runs, document(sightings, chosen, runs, facts))


def gram_space(features: Features, usable: np.ndarray[Any, Any] | None = None) -> GramSpace:
    """Gram matrices of stored features, block by block, optionally of some rows only."""
    blocks = list(features.blocks)
    parts, widths = [], []
    for part in features.parts:
        own: list[int] = []
        while sum(own) < part.shape[1]:
            own.append(blocks.pop(0))
        parts.append(part if usable is None or usable.all() else part[usable])
        widths.append(tuple(own))
    return GramSpace(parts, widths)
