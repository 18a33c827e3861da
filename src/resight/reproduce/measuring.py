"""Measure the paper's tables from raw images: each run once, kept on disk, shared by tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from resight import datasets
from resight._files import digest_of, write_json
from resight.errors import unknown_name
from resight.experiments.in_gram_space import SplitRunner
from resight.experiments.learning_curve import some_people
from resight.experiments.runner import over_splits
from resight.features.store import Features, FeatureStore
from resight.protocols import Split, for_dataset
from resight.registry import AUTO
from resight.reproduce.page import run_figures, table_document
from resight.reproduce.paper import Job, PaperTable
from resight.tuning.candidates import AUTO_MIRROR
from resight.tuning.gram import GramSpace, gram_space
from resight.workers.executors import Executor

SCHEMA = "resight.reproduce/1"
_SIZES = ("grid", "prid2011", "prid450s", "cuhk01")  # ascending


def reproduce(
    tables: Iterable[PaperTable], bench: Bench, *, slow: bool = False, only: Iterable[str] = ()
) -> dict[str, Any]:
    """Measure all rows of some tables and return the document.

    Rows that take hours (`takes_hours`) are left out, and marked so, unless `slow`. With `only`,
    no other versions are measured now; those measured before are shown.
    """
    chosen, versions = list(tables), set(only)
    jobs = dict.fromkeys(job for table in chosen for row in table.rows for job in table.jobs(row))
    known = {job.plan.version for job in jobs}
    for version in versions - known:
        raise unknown_name("version", version, known)
    found = {}
    for job in sorted(jobs, key=_order):
        now = (slow or not takes_hours(job)) and (not versions or job.plan.version in versions)
        figures = bench.measure(job) if now else bench.known(job)
        if figures is not None:
            found[job] = figures
    return {"schema": SCHEMA, "tables": [table_document(table, found) for table in chosen]}


def takes_hours(job: Job) -> bool:
    """Tell rows that take longer than all others together.

    MLAPG on CUHK01 needs some hundred eigendecompositions of 1,940 x 1,940 in each split.
    """
    return job.plan.learner == "mlapg" and job.dataset == "cuhk01"


def _order(job: Job) -> tuple[int, int, str, tuple[str, ...]]:
    """Quick before iterative, small before large, and equal Gram matrices together."""
    size = _SIZES.index(job.dataset) if job.dataset in _SIZES else len(_SIZES)
    return job.plan.spec.effort, size, job.protocol, job.descriptors


@dataclass
class Bench:
    """Measures jobs, and holds what consecutive ones share: sightings, features, Gram matrices.

    Features are stored in ``out/features``, each finished run in ``out/runs`` and its splits in
    ``out/splits``: a second or an interrupted and repeated call does only what is missing.
    """

    data: Path
    out: Path
    n_jobs: int = 1
    executor: Executor | None = None
    say: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        self.store = FeatureStore(self.out / "features")
        # Loads a dataset; the last one is kept.
        self.sightings = lru_cache(maxsize=1)(partial(datasets.load, root=self.data))
        self.features = cache(self._described)
        self._spaces: dict[tuple[str, str, bool], GramSpace] = {}

    def known(self, job: Job) -> dict[str, Any] | None:
        """Return the figures of a run that was finished before."""
        file = self._file(job)
        return json.loads(file.read_text("utf-8")) if file.is_file() else None

    def measure(self, job: Job) -> dict[str, Any]:
        """Return the run's figures, from disk if it was finished before."""
        known = self.known(job)
        if known is not None:
            return known
        file, sightings = self._file(job), self.sightings(job.dataset)
        start = time.perf_counter()
        title = f"{job.protocol}, {'+'.join(job.descriptors)}, {job.plan.learner}"
        title += "" if job.plan.rerank is None else f", {job.plan.rerank}"
        title += "" if job.people is None else f", {job.people} people"
        protocol, space = for_dataset(sightings, job.protocol), self.space(job)
        splits = protocol.splits
        if job.people is not None:
            splits = tuple(
                replace(split, train=some_people(sightings, split.train, job.people, draw=number))
                for number, split in enumerate(splits)
            )

        def trial(split: Split) -> dict[str, Any]:
            return SplitRunner(sightings, protocol, space, split).measure([job.plan])[0].figures()

        folder = self.out / "splits" / file.stem
        trials = over_splits(trial, splits, folder, n_jobs=self.n_jobs, title=title)
        figures = run_figures(job, trials, time.perf_counter() - start)
        write_json(file, figures)
        rank1 = figures["summary"]["rank1"]
        reached = f"rank 1 {rank1['mean']:.2f} ± {rank1['sd']:.2f}, {figures['seconds']:.0f} s"
        for text in (f"{title} ({job.plan.version}): {reached}", *figures["warnings"]):
            self.say(text)
        return figures

    def _file(self, job: Job) -> Path:
        """Where a run is kept: the name depends on everything that its figures do."""
        protocol = for_dataset(self.sightings(job.dataset), job.protocol)
        plan = json.dumps(asdict(job.plan), sort_keys=True)
        parts = (self.features(job.dataset, *one).fingerprint for one in _inputs(job))
        fewer = () if job.people is None else (f"{job.people} people",)
        name = digest_of(job.dataset, protocol.fingerprint, plan, *fewer, *parts)
        return self.out / "runs" / f"{name}.json"

    def _described(self, dataset: str, descriptor: str, mirror: bool) -> Features:
        """Features from the store, computed where they are missing."""
        return self.store.ensure(self.sightings(dataset), descriptor, mirror, self.executor)

    def space(self, job: Job) -> GramSpace:
        """Gram matrices of a job's descriptors; those of one dataset are kept."""
        self._spaces = {key: one for key, one in self._spaces.items() if key[0] == job.dataset}
        wanted = [(job.dataset, *one) for one in _inputs(job)]
        for key in wanted:
            if key not in self._spaces:
                self._spaces[key] = gram_space(self.features(*key))
        return GramSpace.joined(self._spaces[key] for key in wanted)


def _inputs(job: Job) -> list[tuple[str, bool]]:
    """Descriptors of a job, and whether averaged over mirror images."""
    mirrors = AUTO_MIRROR if job.plan.learner == AUTO else (False,)
    return [(name, mirror) for mirror in mirrors for name in job.descriptors]
