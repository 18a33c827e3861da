"""Measured runs as documents: figures of a run, and the rows of a table with comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from resight.experiments.results import summary_of
from resight.experiments.trials import warnings_of
from resight.registry import AUTO
from resight.reproduce.paper import Job, PaperTable


def run_figures(job: Job, trials: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Summarise the trials of a run (`Trial.figures`), in percent."""
    figures = {
        "dataset": job.dataset,
        "protocol": job.protocol,
        "descriptors": list(job.descriptors),
        "learner": job.plan.learner,
        "version": job.plan.version,
        "summary": summary_of(trials),
        "trials": [{"rank1": 100.0 * t["ranks"]["rank1"], "fit_s": t["fit_s"]} for t in trials],
        "seconds": seconds,
        "warnings": warnings_of([trial["warnings"] for trial in trials]),
    }
    tables = [trial["choice"] for trial in trials if trial["choice"]]
    if tables:
        figures["chosen"] = [trial["params"] for trial in trials]
    if tables and job.plan.learner == AUTO:
        figures["stages"] = _stages(tables)
    return figures


def _stages(tables: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Tell what each stage of the choices tried and gave to the mixture.

    Means over splits: metrics tried, mean average precision of the best of them on training
    people held out and share of the mixture, both in percent.
    """
    names = dict.fromkeys(row["stage"] for table in tables for row in table)
    stages = []
    for name in names:
        rows = [[row for row in table if row["stage"] == name] for table in tables]
        shares = [sum(row["share"] for row in of_split) for of_split in rows]
        best = [max(row["map"] for row in of_split) for of_split in rows if of_split]
        stages.append(
            {
                "stage": name,
                "tried": float(np.mean([len(of_split) for of_split in rows])),
                "taken": sum(share > 0.0 for share in shares),
                "share": 100.0 * float(np.mean(shares)),
                "map": 100.0 * float(np.mean(best)),
            }
        )
    return stages


def table_document(table: PaperTable, found: Mapping[Job, dict[str, Any]]) -> dict[str, Any]:
    """Return a table with everything that was measured for its rows."""
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        figures = [found[job] for job in table.jobs(row) if job in found]
        base = {
            "learner": row.learner,
            "title": row.title,
            "descriptors": list(row.descriptors),
            "descriptors_inferred": row.inferred,
            "paper": row.printed,
        }
        measured = [{**base, **_measured(one)} for one in figures]
        for one, its_figures in zip(measured, figures, strict=True):
            if its_figures["learner"] == AUTO:
                one |= _compared(its_figures, figures, table.target)
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
    found = {
        "version": figures["version"],
        "descriptors": figures["descriptors"],
        **{name: summary[name]["mean"] for name in summary},
        "sd": {name: summary[name]["sd"] for name in summary},
        "seconds": figures["seconds"],
    }
    if "stages" in figures:
        variants = _counts([one["variant"] for one in figures["chosen"]])
        found |= {"chosen_by": {"variant": variants}, "stages": figures["stages"]}
    elif "chosen" in figures:
        settings = ((f"{key}={value}" for key, value in one.items()) for one in figures["chosen"])
        found["chosen"] = _counts([", ".join(setting) for setting in settings])
    return found


def _compared(
    figures: dict[str, Any], others: Sequence[dict[str, Any]], target: float | None
) -> dict[str, Any]:
    """Compare `auto` with `cv` split by split, and with the target."""
    found: dict[str, Any] = {}
    if target is not None:
        found["target"] = {
            "rank1": target,
            "reached": figures["summary"]["rank1"]["mean"] >= target,
        }
    for other in others:
        if other["version"] == "cv":
            own, its = (
                np.array([trial["rank1"] for trial in one["trials"]]) for one in (figures, other)
            )
            found["minus_cv"] = {
                "mean": float((own - its).mean()),
                "sd": float((own - its).std(ddof=1)) if len(own) > 1 else 0.0,
                "above": int((own > its).sum()),
                "splits": len(own),
            }
    return found


def _counts(words: Sequence[str]) -> dict[str, int]:
    """How often each was chosen, most frequent first."""
    return dict(Counter(sorted(words)).most_common())
