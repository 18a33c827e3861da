"""Measured tables as documents and as Markdown pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from resight.experiments.results import summary_of
from resight.experiments.tables import markdown_table
from resight.experiments.trials import warnings_of
from resight.registry import AUTO
from resight.reproduce.paper import Job, PaperTable, reasons
from resight.tuning.candidates import AUTO_VARIANTS

_RANKS = ("rank1", "rank5", "rank10", "rank20")


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
        told = {"stage": name, "taken": sum(share > 0.0 for share in shares)}
        told["tried"] = float(np.mean([len(of_split) for of_split in rows]))
        told |= {"share": 100.0 * float(np.mean(shares)), "map": 100.0 * float(np.mean(best))}
        stages.append(told)
    return stages


def table_document(table: PaperTable, found: Mapping[Job, dict[str, Any]]) -> dict[str, Any]:
    """Return a table with everything that was measured for its rows."""
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        base: dict[str, Any] = {"learner": row.learner, "title": row.title, "paper": row.printed}
        base |= {"descriptors": list(row.descriptors), "descriptors_inferred": row.inferred}
        measured = [{**base, **_measured(found[job])} for job in table.jobs(row) if job in found]
        rows += measured or [{**base, "version": "missing"}]
    facts = {name: getattr(table, name) for name in ("name", "title", "dataset", "protocol")}
    return {**facts, "rows": rows, "reported": table.reported}


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


def _counts(words: Sequence[str]) -> dict[str, int]:
    """How often each was chosen, most frequent first."""
    return dict(Counter(sorted(words)).most_common())


def rendered(template: str, **context: Any) -> str:
    """Fill in one of the Markdown templates beside this file."""
    from jinja2 import Environment, PackageLoader

    pages = Environment(loader=PackageLoader("resight.reproduce"), trim_blocks=True)
    pages.keep_trailing_newline = True
    return pages.get_template(template).render(context)


def page_of(document: dict[str, Any]) -> str:
    """Return the page of a `resight.reproduce/1` document."""
    tables = document["tables"]
    rows = [(table, row) for table in tables for row in table["rows"]]
    missing = any(row["version"] == "missing" for _, row in rows)
    # Run time of all distinct runs: tables share some.
    runs = {(t["dataset"], t["protocol"], _title(row)): row.get("seconds", 0.0) for t, row in rows}
    figures = {"tables": tables, "missing": missing, "minutes": sum(runs.values()) / 60.0}
    return rendered("tables.md", **figures, grid=_grid, reasons=reasons())


def _grid(table: dict[str, Any]) -> str:
    ranks = [name for name in _RANKS if name in table["rows"][0]["paper"]]
    headings = ("learner", *(name.replace("rank", "rank ") for name in ranks), "difference", "s")
    return markdown_table(headings, [[_title(row), *_cells(row, ranks)] for row in table["rows"]])


def _title(row: dict[str, Any]) -> str:
    version = "" if row["version"] == "default" else f" `{row['version']}`"
    named = [name for name in row["descriptors"] if name not in AUTO_VARIANTS]
    variants = len(row["descriptors"]) - len(named)  # listed below the table, not in it
    descriptors = "+".join(named) + (f" and {variants} variants" if variants else "")
    return f"{row['title']}{version}, {descriptors}{'?' if row['descriptors_inferred'] else ''}"


def _cells(row: dict[str, Any], ranks: list[str]) -> list[str]:
    if row["version"] == "missing":
        return [f"- {_printed(row, name)}" for name in ranks] + ["-", "-"]
    cells = [f"{row[name]:.1f} {_printed(row, name)}" for name in ranks]
    measured, printed = cells[0].split(" ")
    cells[0] = f"{measured} ± {row['sd']['rank1']:.1f} {printed}"
    difference = row["rank1"] - row["paper"]["rank1"]
    return [*cells, f"{difference:+.1f}", f"{row['seconds']:.0f}"]


def _printed(row: dict[str, Any], rank: str) -> str:
    value = row["paper"][rank]
    return "(not given)" if value is None else f"({value:.1f})"
