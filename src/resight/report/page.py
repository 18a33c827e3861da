"""The report: what was measured, how sure it is, what went wrong, how to do it again."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

from resight._files import atomic_write
from resight.datasets.sightings import Sightings
from resight.errors import ResightError
from resight.images import read
from resight.images.reading import data_uri
from resight.report.displays import CMCDisplay, LearningCurveDisplay, ReliabilityDisplay
from resight.report.result_files import compare_runs, read_rankings

_MEASURES = [(f"rank{k}", f"rank {k}") for k in (1, 5, 10, 20)]
_MEASURES += [("map", "mAP"), ("minp", "mINP")]
_QUERIES = 24  # pictures keep the file small: at most so many queries ...
_ANSWERS = 8  # ... with so many answers each
_HEIGHT = 96


def write(
    path: Path,
    result: dict[str, Any],
    sightings: Sightings | None = None,
    rankings: Path | None = None,
    command: str = "",
) -> None:
    """Write the report of a `resight.result/1` document, made by `command`, as one HTML file.

    With sightings and rankings, ranked lists are shown as pictures, where the images can be read.
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
    }
    if sightings is not None and rankings is not None:
        context["lists"] = worst_first(read_rankings(rankings), sightings)
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


def worst_first(rows: list[dict[str, str]], sightings: Sightings) -> list[dict[str, Any]]:
    """Show ranked lists of the first run and split: the worst, down to some that went well.

    A picture is a data URI, None where the file cannot be read.
    """
    own = [row for row in rows if row["run"] == "0" and row["split"] == "0"]
    own.sort(key=lambda row: -int(row["first_rank"]))
    step = max(1, len(own) // _QUERIES)
    worst, rest = own[: _QUERIES // 2], own[_QUERIES // 2 :: step]
    labels = zip(sightings.persons.tolist(), sightings.cameras.tolist(), strict=True)
    known = dict(zip(sightings.paths.tolist(), labels, strict=True))
    lists = []
    for row in worst + rest[: _QUERIES - len(worst)]:
        answers = []
        for path in row["top_paths"].split("|")[:_ANSWERS]:
            person, camera = known.get(path, ("", ""))
            label, right = f"{person or 'unknown'}, {camera}", person == row["person"]
            shown = _picture(sightings, path)
            answers.append({"picture": shown, "label": label, "right": right})
        shown, rank = _picture(sightings, row["query"]), int(row["first_rank"])
        query = {"picture": shown, "person": row["person"], "camera": row["query_camera"]}
        lists.append({**query, "first_rank": rank, "answers": answers})
    return lists


def _picture(sightings: Sightings, path: str) -> str | None:
    try:
        return data_uri(read(sightings.root / path), _HEIGHT, quality=78)
    except (ResightError, OSError):
        return None
