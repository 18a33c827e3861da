"""Results as documents: `result.json` (schema resight.result/1), `rankings.csv`, and the way on.

The way on after an evaluation: which run won, whether by more than chance, and how to fit it.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from resight._files import atomic_write, write_json
from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.evaluation.ranking import COLUMNS
from resight.evaluation.statistics import summarise
from resight.experiments.tables import results_table
from resight.experiments.trials import LABELS, RANKS, warnings_of
from resight.features.store import Failure, Features
from resight.plans import Plan
from resight.protocols import Protocol
from resight.report.result_files import JSON, SCHEMA, compare_runs, read_rankings, read_result

if TYPE_CHECKING:
    from pandas import DataFrame

SURE = 0.05  # p below which a margin is called more than chance
Trials = Sequence[dict[str, Any]]  # of one plan, one for each split: `Trial.to_dict`


@dataclass(frozen=True)
class Run:
    """A plan on some descriptors, with its trials."""

    plan: Plan
    descriptors: tuple[str, ...]
    trials: Trials

    @property
    def title(self) -> str:
        """Name for tables and curves."""
        version = "" if self.plan.version == "default" else f" ({self.plan.version})"
        after = "" if self.plan.rerank is None else f", re-ranked ({self.plan.rerank})"
        return f"{self.plan.spec.title}{version}, {'+'.join(self.descriptors)}{after}"


@dataclass(frozen=True, repr=False)
class Result:
    """What an evaluation measured.

    Attributes
    ----------
    document : dict
        Schema ``resight.result/1``: plain types, percentages.
    rankings : list of dict
        Where each query found its person: the rows of ``rankings.csv``.
    failures : tuple of Failure
        Images that could not be used and were left out.

    Examples
    --------
    >>> result = Result.load("result")  # doctest: +SKIP
    >>> result.to_frame().groupby("title")["rank1"].mean()  # doctest: +SKIP
    """

    document: dict[str, JSON]
    rankings: list[dict[str, str]]
    failures: tuple[Failure, ...] = ()

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read what `save`, or ``resight evaluate --out``, wrote."""
        return cls(read_result(folder), read_rankings(Path(folder) / "rankings.csv"))

    def save(self, folder: str | Path) -> None:
        """Write `result.json` and `rankings.csv` into a folder, each atomically."""
        with atomic_write(Path(folder) / "rankings.csv", "w") as stream:
            columns = ("run", "split", *LABELS, *COLUMNS)
            writer = csv.DictWriter(stream, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rankings)
        write_json(Path(folder) / "result.json", self.document)

    def to_frame(self) -> DataFrame:
        """Return a pandas table, one row for each run and split, in percent and seconds."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise InputError("to_frame() needs pandas: pip install pandas") from None
        rows = []
        document: dict[str, Any] = self.document
        for run in document["runs"]:
            facts = {name: run[name] for name in ("title", "learner", "version", "rerank")}
            facts["descriptors"] = "+".join(run["descriptors"])
            for split, trial in enumerate(run["trials"]):
                ranks = {f"rank{k}": percent for k, percent in trial["cmc"].items()}
                others = {name: trial[name] for name in ("map", "minp", "fit_s")}
                rows.append({**facts, "split": split, **ranks, **others})
        return DataFrame(rows)

    @property
    def winner(self) -> dict[str, Any]:
        """The best run, and whether its margin is more than chance; see `winner_of`."""
        return winner_of(self.document)

    def __repr__(self) -> str:
        return results_table(self.document)

    def _repr_html_(self) -> str:
        return results_table(self.document, html=True)


def summary_of(trials: Trials) -> dict[str, dict[str, Any]]:
    """Summarise figures of trials (`Trial.figures`): mean, sd and 95% interval, in percent."""
    values = {name: [trial["ranks"][name] for trial in trials] for name in trials[0]["ranks"]}
    others = (name for name in ("map", "minp") if name in trials[0])
    values |= {name: [trial[name] for trial in trials] for name in others}
    return {name: summarise(100.0 * np.array(fractions)) for name, fractions in values.items()}


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


def _run_document(run: Run) -> dict[str, Any]:
    pairs = [one for trial in run.trials for one in trial["camera_pairs"]]
    counts = {name: [one[name] for one in pairs] for name in ("asked", "right") if pairs}
    summed = {name: np.sum(values, axis=0).tolist() for name, values in counts.items()}
    return {
        "learner": run.plan.learner,
        "title": run.title,
        "descriptors": list(run.descriptors),
        "version": run.plan.version,
        "params": run.plan.params,
        "rerank": run.plan.rerank,
        "trials": [_trial_document(trial) for trial in run.trials],
        "summary": summary_of(run.trials),
        "camera_pairs": {"cameras": pairs[0]["cameras"], **summed} if pairs else None,
        "warnings": warnings_of([trial["warnings"] for trial in run.trials]),
    }


def _trial_document(trial: dict[str, Any]) -> dict[str, Any]:
    found = {
        "cmc": {str(k): 100.0 * trial["ranks"][f"rank{k}"] for k in RANKS},
        "curve": [round(100.0 * value, 4) for value in trial["curve"]],
        "map": 100.0 * trial["map"],
        "minp": 100.0 * trial["minp"],
        "fit_s": trial["fit_s"],
    }
    if trial["choice"] is not None:
        found |= {"chosen": trial["params"], "candidates": trial["choice"]}
    return found


def ranking_rows(runs: Sequence[Run]) -> list[dict[str, str]]:
    """Return the rows of `rankings.csv`: one for each run, split, direction and query."""
    return [
        {"run": f"{number}", "split": f"{split}", **row}
        for number, run in enumerate(runs)
        for split, trial in enumerate(run.trials)
        for row in trial["rankings"]
    ]


def winner_of(document: dict[str, Any]) -> dict[str, Any]:
    """Compare the run of the best mean rank 1 with the next best, over the same splits.

    Re-ranked runs are left out: re-ranking belongs to searches, not to models. The interval and
    p-value (None for a single split) are those of the corrected resampled t test.
    """
    runs = document["runs"]
    rank1 = {i: run["summary"]["rank1"]["mean"] for i, run in enumerate(runs) if not run["rerank"]}
    best, *others = sorted(rank1, key=lambda i: -rank1[i])
    found = {"run": best, "title": runs[best]["title"], "rank1": rank1[best]}
    if not others:
        return {**found, "sentence": f"{found['title']} finds {rank1[best]:.1f}% at rank 1."}
    other, margin = runs[others[0]], rank1[best] - rank1[others[0]]
    found |= {"over": other["title"], "margin": margin}
    ahead = f"{found['title']} finds most at rank 1 ({rank1[best]:.1f}%), {margin:.1f} points more "
    ahead += f"than {other['title']}"
    n_splits = len(other["trials"])
    if n_splits < 2:
        told = f"{ahead}; one split cannot tell whether that is chance."
        return {**found, "ci95": None, "p_value": None, "more_than_chance": None, "sentence": told}
    compared = compare_runs(document, runs[best], other)
    sure, (low, high) = compared.p_value < SURE, compared.ci95
    found |= {"ci95": [low, high], "p_value": compared.p_value, "more_than_chance": sure}
    chance = "more than chance" if sure else "that may be chance"
    interval = f"(95% interval {low:+.1f} to {high:+.1f} over {n_splits} splits)"
    return {**found, "sentence": f"{ahead}: {chance} {interval}."}


def fit_facts(plan: Plan, features: Features, mirror: bool) -> dict[str, Any]:
    """Return everything that `resight fit` needs to fit what a run measured."""
    own = features.file is not None
    # A network is found again by its file, and called by its name elsewhere.
    described = "+".join(getattr(one, "file", one.name) for one in features.made_by)
    return {
        "learner": plan.word,
        "params": plan.params,
        "descriptor": None if own else described,
        "mirror": mirror,
        "features": features.file,
        "digest": features.fingerprint if own else None,
    }


def fit_command(run: dict[str, Any], *places: str) -> str:
    """Return the `resight fit` that makes a run's model; `places` are data and root as given."""
    fit = run["fit"]
    words = ["resight", "fit", *places]
    for name in ("features", "descriptor", "learner"):
        words += [f"--{name}", fit[name]] if fit[name] else []
    for name, value in fit["params"].items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--param", f"{name}={text}"]
    return shlex.join([*words, *(["--mirror"] if fit["mirror"] else []), "--out", "model"])


def fit_of(folder: str | Path, learner: str | None, descriptor: str | None) -> dict[str, Any]:
    """Return the `fit_facts` of the best run of a saved result, or of the best of those named."""
    document = read_result(folder)
    runs = [run for run in document["runs"] if not run["rerank"]]
    if not all("fit" in run for run in runs):
        raise InputError(
            f"{folder} was written by resight {document['environment']['resight']}, which did not "
            "note how to fit what it measured; evaluate again, or name --descriptor and --learner "
            "instead of --from"
        )
    wanted = {"learner": learner, "descriptor": descriptor}
    named = [run for run in runs if all(v in (None, run["fit"][k]) for k, v in wanted.items())]
    if not named:
        known = (fit_command(run).partition("fit ")[2].partition(" --out")[0] for run in runs)
        raise InputError(f"{folder} has no such run; it has {'; '.join(known)}")
    return dict(max(named, key=lambda run: float(run["summary"]["rank1"]["mean"]))["fit"])
