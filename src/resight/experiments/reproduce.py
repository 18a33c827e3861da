"""Measure the paper's tables from raw images: each run once, kept on disk, shared by tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight import datasets
from resight._files import digest_of, write_json
from resight.datasets.sightings import Sightings
from resight.experiments.evaluate import gram_space
from resight.experiments.executors import Executor
from resight.experiments.features import Features, FeatureStore
from resight.experiments.gram import GramSpace
from resight.experiments.paper import PaperTable
from resight.experiments.registry import ITERATIVE
from resight.experiments.results import percent_summary
from resight.experiments.runner import RANKS, Plan, Trial, run, warnings_of
from resight.protocols import Protocol, for_dataset

SCHEMA = "resight.reproduce/1"
Say = Callable[[str], None]
_SIZES = ("grid", "prid2011", "prid450s", "cuhk01")  # ascending


@dataclass(frozen=True)
class Job:
    """One measurement that some rows of some tables need."""

    dataset: str
    protocol: str
    descriptors: tuple[str, ...]
    plan: Plan


def reproduce(
    tables: Iterable[PaperTable],
    data: Path,
    out: Path,
    *,
    slow: bool = False,
    n_jobs: int = 1,
    executor: Executor | None = None,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Measure all rows of some tables and return the document.

    Rows that take hours (`takes_hours`) are left out, and marked so, unless `slow`.

    Features are stored in ``out/features`` and each finished run in ``out/runs``: a second or an
    interrupted and repeated call does only what is missing.
    """
    chosen = list(tables)
    bench = _Bench(data, out, n_jobs, executor, say)
    jobs = dict.fromkeys(
        Job(table.dataset, table.protocol_name, row.descriptors, plan)
        for table in chosen
        for row in table.rows
        for plan in row.plans()
    )
    wanted = [job for job in jobs if slow or not takes_hours(job)]
    found = {job: bench.measure(job) for job in sorted(wanted, key=_order)}
    return {"schema": SCHEMA, "tables": [_table_document(table, found) for table in chosen]}


def takes_hours(job: Job) -> bool:
    """Tell rows that take longer than all others together.

    MLAPG on CUHK01 needs some hundred eigendecompositions of 1,940 x 1,940 in each split.
    """
    return job.plan.learner == "mlapg" and job.dataset == "cuhk01"


def _order(job: Job) -> tuple[int, int, str, tuple[str, ...]]:
    """Quick before iterative, small before large, and equal Gram matrices together."""
    learner = job.plan.learner
    slow = 1 + ITERATIVE.index(learner) if learner in ITERATIVE else 0
    return slow, _SIZES.index(job.dataset), job.protocol, job.descriptors


class _Bench:
    """Holds what consecutive jobs share: sightings, features, Gram matrices."""

    def __init__(
        self, data: Path, out: Path, n_jobs: int, executor: Executor | None, say: Say
    ) -> None:
        self.data, self.out, self.n_jobs = data, out, n_jobs
        self.executor, self.say = executor, say
        self.store = FeatureStore(out / "features")
        self._sightings: tuple[str, Sightings] | None = None
        self._features: dict[tuple[str, str], Features] = {}
        self._space: tuple[tuple[str, tuple[str, ...]], GramSpace] | None = None

    def measure(self, job: Job) -> dict[str, Any]:
        """Return the run's figures, from disk if it was finished before."""
        sightings = self.sightings(job.dataset)
        protocol = for_dataset(sightings, job.protocol)
        features = [self.features(job.dataset, name) for name in job.descriptors]
        file = self.out / "runs" / f"{_key(job, protocol, features)}.json"
        if file.is_file():
            known: dict[str, Any] = json.loads(file.read_text())
            return known
        start = time.perf_counter()
        space = self.space(job)
        title = f"{job.protocol}, {'+'.join(job.descriptors)}, {job.plan.learner}"
        trials = run(sightings, protocol, space, [job.plan], n_jobs=self.n_jobs, title=title)[0]
        figures = _figures(job, trials, time.perf_counter() - start)
        write_json(file, figures)
        rank1 = figures["summary"]["rank1"]
        self.say(
            f"{title} ({job.plan.version}): rank 1 {rank1['mean']:.2f} ± {rank1['sd']:.2f}, "
            f"{figures['seconds']:.0f} s"
        )
        for text in figures["warnings"]:
            self.say(f"  {text}")
        return figures

    def sightings(self, dataset: str) -> Sightings:
        if self._sightings is None or self._sightings[0] != dataset:
            self._sightings = (dataset, datasets.load(dataset, root=self.data))
        return self._sightings[1]

    def features(self, dataset: str, descriptor: str) -> Features:
        if (dataset, descriptor) not in self._features:
            self._features[dataset, descriptor] = self.store.ensure(
                self.sightings(dataset), descriptor, executor=self.executor
            )
        return self._features[dataset, descriptor]

    def space(self, job: Job) -> GramSpace:
        key = (job.dataset, job.descriptors)
        if self._space is None or self._space[0] != key:
            grams = GramSpace.joined(
                gram_space(self.features(job.dataset, name)) for name in job.descriptors
            )
            self._space = (key, grams)
        return self._space[1]


def _key(job: Job, protocol: Protocol, features: list[Features]) -> str:
    plan = json.dumps(asdict(job.plan), sort_keys=True)
    return digest_of(
        job.dataset, protocol.fingerprint, plan, *(part.fingerprint for part in features)
    )


def _figures(job: Job, trials: list[Trial], seconds: float) -> dict[str, Any]:
    summary = {f"rank{k}": percent_summary([trial.rank(k) for trial in trials]) for k in RANKS}
    summary["map"] = percent_summary([trial.map for trial in trials])
    figures = {
        "dataset": job.dataset,
        "protocol": job.protocol,
        "descriptors": list(job.descriptors),
        "learner": job.plan.learner,
        "version": job.plan.version,
        "summary": summary,
        "trials": [{"rank1": 100.0 * trial.rank(1), "fit_s": trial.fit_s} for trial in trials],
        "seconds": seconds,
        "warnings": warnings_of(trials),
    }
    if any(trial.choice for trial in trials):
        figures["chosen"] = [trial.params for trial in trials]
    return figures


def _table_document(table: PaperTable, found: dict[Job, dict[str, Any]]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        base = {
            "learner": row.learner,
            "title": row.title,
            "descriptors": list(row.descriptors),
            "descriptors_inferred": row.inferred,
            "paper": row.printed,
        }
        jobs = [
            Job(table.dataset, table.protocol_name, row.descriptors, plan) for plan in row.plans()
        ]
        measured = [{**base, **_measured(found[job])} for job in jobs if job in found]
        rows += measured or [{**base, "version": "missing"}]
    return {
        "name": table.name,
        "title": table.title,
        "dataset": table.dataset,
        "protocol": table.protocol,
        "rows": rows,
        "reported": table.reported,
    }


def _measured(figures: dict[str, Any]) -> dict[str, Any]:
    summary = figures["summary"]
    return {
        "version": figures["version"],
        **{name: summary[name]["mean"] for name in summary},
        "sd": {name: summary[name]["sd"] for name in summary},
        "seconds": figures["seconds"],
        **({"chosen": _counts(figures["chosen"])} if "chosen" in figures else {}),
    }


def _counts(chosen: list[dict[str, Any]]) -> dict[str, int]:
    """How often each setting was chosen, most frequent first."""
    words = [", ".join(f"{key}={value}" for key, value in one.items()) for one in chosen]
    names, counts = np.unique(words, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(names[i]): int(counts[i]) for i in order}
