"""The main job: sightings and a protocol in, a result document out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.out_of_core import needs_direct, run_direct
from resight.experiments.results import Run, document
from resight.experiments.runner import Plan, Trial, run
from resight.features.rows import FeatureRows
from resight.features.store import Failure, Features, FeatureStore
from resight.protocols import Protocol, for_dataset, from_file
from resight.registry import AUTO
from resight.tuning.gram import GramSpace, Rows, gram_space
from resight.workers.executors import Executor


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

    Unreadable images are left out of the evaluation and returned as `failures`. For the learner
    `auto` descriptors averaged over mirror images are extracted too, unless `mirror` asks for
    nothing else: it chooses.
    """
    _check_auto(plans)
    found = {
        names: store.ensure(sightings, names, mirror, executor, on_error="collect")
        for names in descriptor_sets
    }
    both = not mirror and any(plan.learner == AUTO for plan in plans)
    usable = np.logical_and.reduce([features.usable for features in found.values()])
    if not usable.any():
        first = next(iter(found.values())).failures[0]
        raise InputError(f"no image could be described; the first: {first.path}: {first.reason}")
    kept = sightings.select(np.flatnonzero(usable))
    chosen = from_file(splits, kept) if splits else for_dataset(kept, protocol)
    runs = []
    for names, features in found.items():
        workers = _Workers(n_jobs, executor, store.folder)
        other = store.ensure(sightings, names, True, executor, on_error="collect") if both else None
        trials = _measure(kept, chosen, features, usable, plans, workers, f"splits, {names}", other)
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
    _check_auto(plans)
    chosen = from_file(splits, sightings) if splits else for_dataset(sightings, protocol)
    trials = _measure(sightings, chosen, features, None, plans, _Workers(n_jobs))
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


class _Workers(NamedTuple):
    """Processes here, or elsewhere with a folder that both see."""

    n_jobs: int
    executor: Executor | None = None
    scratch: Path | None = None


def _measure(
    sightings: Sightings,
    protocol: Protocol,
    features: Features,
    usable: np.ndarray[Any, Any] | None,
    plans: Sequence[Plan],
    workers: _Workers,
    title: str = "splits",
    mirrored: Features | None = None,
) -> list[list[Trial]]:
    """Measure plans in Gram space where it fits, else from the features; in the plans' order.

    `mirrored` are features averaged over mirror images, for `auto` to choose.
    """
    index = None if usable is None else np.flatnonzero(usable)
    source = FeatureRows(features.parts, features.blocks, index)
    direct = [plan for plan in plans if needs_direct(plan, source)]
    others = [plan for plan in plans if plan not in direct]
    found: dict[int, list[Trial]] = {}
    if others:
        found |= _in_gram_space(
            sightings, protocol, features, usable, others, mirrored, workers, title
        )
    if direct:
        trials = run_direct(
            sightings,
            protocol,
            source,
            direct,
            fingerprint=features.fingerprint,
            n_jobs=workers.n_jobs,
            executor=workers.executor,
            scratch=workers.scratch,
            title=title,
        )
        found |= {id(plan): of_plan for plan, of_plan in zip(direct, trials, strict=True)}
    return [found[id(plan)] for plan in plans]


def _in_gram_space(
    sightings: Sightings,
    protocol: Protocol,
    features: Features,
    usable: np.ndarray[Any, Any] | None,
    plans: Sequence[Plan],
    mirrored: Features | None,
    workers: _Workers,
    title: str,
) -> dict[int, list[Trial]]:
    """Measure plans in Gram space; return trials by the plan's `id`."""
    space = gram_space(features, usable, _trainable(protocol, plans))
    choosing = [plan for plan in plans if plan.learner == AUTO and mirrored is not None]
    groups: list[tuple[GramSpace, list[Plan], dict[str, Any]]]
    groups = [(space, [plan for plan in plans if plan not in choosing], {})]
    if choosing and mirrored is not None:
        second = gram_space(mirrored, usable, space.trainable)
        groups.append((GramSpace.joined([space, second]), choosing, {"mirrored": True}))
    found: dict[int, list[Trial]] = {}
    for of_group, some, more in groups:
        made = [replace(plan, params={**plan.params, **more}) for plan in some]
        trials = run(sightings, protocol, of_group, made, n_jobs=workers.n_jobs, title=title)
        found |= {id(plan): of_plan for plan, of_plan in zip(some, trials, strict=True)}
    return found


def _check_auto(plans: Sequence[Plan]) -> None:
    for plan in plans:
        for name in ("blocks", "setting") if plan.learner == AUTO else ():
            if name in plan.params:
                raise InputError(
                    f"{name!r} is a parameter of AutoKXQDA in Python only: here blocks are known "
                    "from the descriptors, and the setting is chosen in each split"
                )


def _trainable(protocol: Protocol, plans: Sequence[Plan]) -> Rows | None:
    """Rows whose inner products with all others are needed: None for all of them."""
    if any(plan.learner == "euclidean" for plan in plans):
        return None  # it compares test rows directly
    return np.unique(np.concatenate([split.train for split in protocol.splits]))
