"""Results as documents: `result.json` (schema resight.result/1) and `rankings.csv`."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from resight._files import atomic_write, write_json
from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.evaluation.camera_pairs import CameraPairs
from resight.evaluation.result import COLUMNS
from resight.evaluation.statistics import summarise
from resight.experiments.runner import RANKS, Plan, Trial, warnings_of
from resight.protocols import Protocol

SCHEMA = "resight.result/1"
LABELS = ("run", "split", "direction", "query", "query_camera", "top_paths")


@dataclass(frozen=True)
class Run:
    """A plan on some descriptors, with its trials."""

    plan: Plan
    descriptors: tuple[str, ...]
    trials: list[Trial]

    @property
    def title(self) -> str:
        """Name for tables and curves."""
        version = "" if self.plan.version == "default" else f" ({self.plan.version})"
        after = "" if self.plan.rerank is None else f", re-ranked ({self.plan.rerank})"
        return f"{self.plan.spec.title}{version}, {'+'.join(self.descriptors)}{after}"

    def summary(self) -> dict[str, dict[str, float | None]]:
        """Mean, standard deviation and 95% interval over trials, in percent."""
        values = {f"rank{k}": [trial.rank(k) for trial in self.trials] for k in RANKS}
        values["map"] = [trial.map for trial in self.trials]
        values["minp"] = [trial.minp for trial in self.trials]
        return {name: percent_summary(numbers) for name, numbers in values.items()}


def percent_summary(fractions: Sequence[float]) -> dict[str, Any]:
    """Summarise fractions over trials as percentages."""
    found = summarise(100.0 * np.asarray(fractions))
    return {"mean": found.mean, "sd": found.sd, "ci95": found.ci95}


def document(
    sightings: Sightings, protocol: Protocol, runs: Sequence[Run], dataset: dict[str, Any]
) -> dict[str, Any]:
    """Build the result document of an evaluation."""
    return {
        "schema": SCHEMA,
        "dataset": {"name": sightings.name, **dataset},
        "protocol": protocol.summary(sightings),
        "runs": [_run_document(run) for run in runs],
        "environment": environment(),
    }


def environment() -> dict[str, Any]:
    """Versions and size of the machine, for the record."""
    import scipy
    import sklearn

    return {
        "resight": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def save(folder: Path, result: dict[str, Any], sightings: Sightings, runs: Sequence[Run]) -> None:
    """Write `result.json` and `rankings.csv` into a folder, each atomically."""
    with atomic_write(folder / "rankings.csv", "w") as stream:
        writer = csv.DictWriter(stream, (*LABELS, *COLUMNS), lineterminator="\n")
        writer.writeheader()
        for number, run in enumerate(runs):
            writer.writerows(_ranking_rows(number, run, sightings))
    write_json(folder / "result.json", result)


def _run_document(run: Run) -> dict[str, Any]:
    return {
        "learner": run.plan.learner,
        "title": run.title,
        "descriptors": list(run.descriptors),
        "version": run.plan.version,
        "params": run.plan.params,
        "rerank": run.plan.rerank,
        "trials": [_trial_document(trial) for trial in run.trials],
        "summary": run.summary(),
        "camera_pairs": _camera_pairs(run),
        "warnings": warnings_of(run.trials),
    }


def _camera_pairs(run: Run) -> dict[str, Any] | None:
    """Add up the counts of all splits and directions."""
    parts = [ranked.cameras for trial in run.trials for ranked in trial.rankings]
    counted = [one for one in parts if one is not None]
    return CameraPairs.total(counted).to_dict() if counted else None


def _trial_document(trial: Trial) -> dict[str, Any]:
    curve = np.mean([result.cmc[:50] for result, *_ in trial.rankings], axis=0)
    found = {
        "cmc": {str(k): 100.0 * trial.rank(k) for k in RANKS},
        "curve": [round(100.0 * value, 4) for value in curve.tolist()],
        "map": 100.0 * trial.map,
        "minp": 100.0 * trial.minp,
        "fit_s": trial.fit_s,
    }
    if trial.choice is not None:
        found |= {"chosen": trial.params, "candidates": trial.choice}
    return found


def _ranking_rows(number: int, run: Run, sightings: Sightings) -> list[dict[str, Any]]:
    rows = []
    for split, trial in enumerate(run.trials):
        for direction, (result, query, gallery, _) in enumerate(trial.rankings):
            for row, source in zip(result.to_rows(), query.tolist(), strict=True):
                top = [int(place) for place in row["top"].split()]
                labels = {
                    "run": number,
                    "split": split,
                    "direction": direction,
                    "query": sightings.paths[source],
                    "query_camera": sightings.cameras[source],
                    "top_paths": "|".join(str(sightings.paths[gallery[i]]) for i in top if i >= 0),
                }
                rows.append({**labels, **row})
    return rows
