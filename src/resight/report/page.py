"""The report: what was measured, how sure it is, what went wrong, how to do it again."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

from resight._files import atomic_write
from resight.datasets.sightings import Sightings
from resight.report.displays import CMCDisplay, LearningCurveDisplay, ReliabilityDisplay
from resight.report.pictures import read_matches, worst_first
from resight.report.result_files import compare_runs, read_rankings

_MEASURES = [(f"rank{k}", f"rank {k}") for k in (1, 5, 10, 20)]
_MEASURES += [("map", "mAP"), ("minp", "mINP")]


def write(
    path: Path,
    result: dict[str, Any],
    sightings: Sightings | None = None,
    rankings: Path | None = None,
    command: str = "",
) -> None:
    """Write the report of a `resight.result/1` document, made by `command`, as one HTML file.

    With sightings and rankings, ranked lists are shown as pictures, where the images can be read,
    and the matches that `explanations.json` beside the rankings explains.
    """
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("resight.report")
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    chosen = [{key: run[key] for key in ("title", "params", "version")} for run in result["runs"]]
    context: dict[str, Any] = {
        "result": result,
        "command": command,
        "measures": _MEASURES,
        "best": max(result["runs"], key=lambda run: float(run["summary"]["rank1"]["mean"])),
        "curves": CMCDisplay.from_document(result).svg(),
        "comparisons": _comparisons(result),
        "reliability": ReliabilityDisplay.from_document(result),
        "learning": LearningCurveDisplay.from_document(result),
        "reranked": any(run.get("rerank") for run in result["runs"]),
        "settings": json.dumps(chosen, indent=1),
        "lists": [],
        "matches": [],
    }
    if sightings is not None and rankings is not None:
        context["lists"] = worst_first(read_rankings(rankings), sightings)
        explanations = rankings.with_name("explanations.json")
        context["explained"], context["matches"] = read_matches(explanations, sightings)
    with atomic_write(path, "w") as stream:
        stream.write(made.get_template("report.html").render(context))


def _comparisons(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Paired differences of rank 1 between runs on the same splits."""
    if result["protocol"]["splits"] < 2:
        return []
    plain = [run for run in result["runs"] if not run.get("rerank")]
    return [
        {"a": a["title"], "b": b["title"], "test": compare_runs(result, a, b)}
        for a, b in combinations(plain[:5], 2)
    ]
