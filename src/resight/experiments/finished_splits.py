"""Trials kept on disk, split by split: an interrupted run loses only the splits in flight."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from resight._files import write_json
from resight._progress import progress
from resight.datasets.sightings import Sightings
from resight.experiments.runner import RANKS, Plan, Trial, run_split
from resight.protocols import Protocol
from resight.tuning.gram import GramSpace


@dataclass(frozen=True)
class KeptTrial:
    """What one learner reached on one split, without the rankings themselves.

    Attributes
    ----------
    ranks : dict
        "rank1", ...: fraction found, mean of directions.
    map : float
    params : dict
        Of the learner; what was chosen where there was a choice.
    fit_s : float
    choice : list of dict or None
        How each candidate scored on training people.
    warnings : tuple of str
    """

    ranks: dict[str, float]
    map: float
    params: dict[str, Any]
    fit_s: float
    choice: list[dict[str, Any]] | None
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, trial: Trial) -> KeptTrial:
        """Take over what is kept of a trial."""
        ranks = {f"rank{k}": trial.rank(k) for k in RANKS}
        return cls(ranks, trial.map, trial.params, trial.fit_s, trial.choice, trial.warnings)

    @classmethod
    def read(cls, file: Path) -> KeptTrial:
        """Read what `write` wrote."""
        content = json.loads(file.read_text("utf-8"))
        return cls(**{**content, "warnings": tuple(content["warnings"])})

    def write(self, file: Path) -> None:
        """Write as JSON, atomically."""
        write_json(file, asdict(self))


def run_kept(
    folder: Path,
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plan: Plan,
    *,
    n_jobs: int = 1,
    title: str = "splits",
) -> list[KeptTrial]:
    """Measure a plan on each split that `folder` does not hold yet; return all trials.

    Splits are spread over processes as in `runner.run`; each is written by the process that
    measured it. The folder must be named after everything the result depends on.
    """
    from joblib import Parallel, delayed

    files = [folder / f"{number}.json" for number in range(len(protocol.splits))]
    tasks = [
        delayed(_measure)(file, sightings, protocol, space, number, plan)
        for number, file in enumerate(files)
        if not file.is_file()
    ]
    with progress(title, len(tasks)) as advance:
        workers = max(1, min(n_jobs, len(tasks)))
        for _ in Parallel(n_jobs=workers, return_as="generator")(tasks):
            advance(1)
    return [KeptTrial.read(file) for file in files]


def _measure(
    file: Path,
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    number: int,
    plan: Plan,
) -> None:
    plans: Sequence[Plan] = [plan]
    trial = run_split(sightings, protocol, space, protocol.splits[number], plans)[0]
    KeptTrial.of(trial).write(file)
