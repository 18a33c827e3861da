"""The measured tables as a Markdown page."""

from __future__ import annotations

from typing import Any

from resight.experiments.tables import markdown_table
from resight.reproduce.paper import not_measured

_MISSING = (
    "Rows marked `missing` were not measured: MLAPG on CUHK01 takes hours and is left to `--slow`. "
)
_RANKS = ("rank1", "rank5", "rank10", "rank20")


def page_of(document: dict[str, Any]) -> str:
    """Return the page of a `resight.reproduce/1` document."""
    missing = any(
        row["version"] == "missing" for table in document["tables"] for row in table["rows"]
    )
    parts = [
        "# The paper's tables, measured",
        f"Made by `resight reproduce all{'' if missing else ' --slow'} --data DIR --page "
        "docs/tables.md`; rank-k accuracy in percent, mean of 10 splits. Each cell is *measured "
        "(printed)*; ± is the standard deviation over our splits, and *difference* is rank 1 "
        f"measured minus printed. The runs took {_minutes(document):.0f} minutes together, "
        "extraction not counted. What the figures say, and why some differ: "
        "[accuracy.md](accuracy.md). Rows that the paper quotes from others come last: KISSME, "
        "LMNN, ITML, CAMEL and IRS on LOMO, OL-MANS and SSM on top of XQDA with GOG, whatever "
        "their papers used.",
        "Versions of k-XQDA: `paper` RBF kernel, the authors' width rule, lambda 1e-7; "
        "`paper-poly` polynomial of degree 2 with offset 1, lambda 1e-7; `cv` kernel, width, "
        "lambda and its form chosen in each split by cross-validation over that split's training "
        "people; `auto` everything that [auto.md](auto.md) lists, chosen likewise: on the "
        "descriptor of the row in tables 1 and 2, on a pool of four elsewhere. XQDA: `raw` "
        "descriptors as its authors use LOMO, and block-`normalized` ones as k-XQDA gets. "
        f"{_MISSING if missing else ''}A `?` marks a descriptor that the paper does not state.",
    ]
    for table in document["tables"]:
        parts += [f"## {table['name'].capitalize()}: {table['title']}", _table(table)]
        parts += [text for text in (_choices(table), _auto(table), _others(table)) if text]
    return "\n\n".join(parts) + "\n"


def _minutes(document: dict[str, Any]) -> float:
    """Run time of all distinct runs: tables share some."""
    runs = {
        (table["dataset"], table["protocol"], _title(row)): row.get("seconds", 0.0)
        for table in document["tables"]
        for row in table["rows"]
    }
    return sum(runs.values()) / 60.0


def _table(table: dict[str, Any]) -> str:
    ranks = [name for name in _RANKS if name in table["rows"][0]["paper"]]
    headings = ("learner", *(name.replace("rank", "rank ") for name in ranks), "difference", "s")
    rows = [[_title(row), *_cells(row, ranks)] for row in table["rows"]]
    return markdown_table(headings, rows)


def _title(row: dict[str, Any]) -> str:
    version = "" if row["version"] == "default" else f" `{row['version']}`"
    descriptors = "+".join(row["descriptors"]) + ("?" if row["descriptors_inferred"] else "")
    return f"{row['title']}{version}, {descriptors}"


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


def _others(table: dict[str, Any]) -> str:
    """List what the paper quotes from others and nobody measured here, each with its reason."""
    reasons, names = not_measured(), table.get("reported", {})
    grouped: dict[str, list[str]] = {}
    for name in names:
        if name in reasons:
            grouped.setdefault(reasons[name], []).append(f"{name} {names[name][0]}")
    lines = [f"- {reason}: {', '.join(found)}" for reason, found in grouped.items()]
    return "\n".join(["Printed (rank 1), not measured:", "", *lines]) if lines else ""


def _choices(table: dict[str, Any]) -> str:
    lines = [
        f"- {'+'.join(row['descriptors'])}: "
        + "; ".join(f"{times} x {what}" for what, times in row["chosen"].items())
        for row in table["rows"]
        if row.get("chosen")
    ]
    return "\n".join(["Chosen by `cv` in the splits:", "", *lines]) if lines else ""


def _auto(table: dict[str, Any]) -> str:
    """Tell what `auto` gained, reached and chose."""
    lines = []
    for row in table["rows"]:
        if "stages" in row:
            lines.append(f"- {'+'.join(row['descriptors'])}: {_compared(row)}")
            lines.append(f"  - chosen in the splits: {_chosen_by(row['chosen_by'])}")
            lines.append(
                f"  - share of the mixture, best mAP alone on people held out: {_stages(row)}"
            )
    return "\n".join(["`auto`, rank 1:", "", *lines]) if lines else ""


def _compared(row: dict[str, Any]) -> str:
    words = [f"{row['rank1']:.1f}"]
    if "minus_cv" in row:
        gap = row["minus_cv"]
        words.append(
            f"{gap['mean']:+.2f} ± {gap['sd']:.2f} against `cv` in the same splits (above in "
            f"{gap['above']} of {gap['splits']})"
        )
    if "target" in row:
        reached = "reached" if row["target"]["reached"] else "not reached"
        words.append(f"target of {row['target']['rank1']:.0f} {reached}")
    return "; ".join(words)


def _chosen_by(chosen: dict[str, dict[str, int]]) -> str:
    return "; ".join(
        f"{name} " + ", ".join(f"{value} ({times} x)" for value, times in counts.items())
        for name, counts in chosen.items()
    )


def _stages(row: dict[str, Any]) -> str:
    words = [
        f"{stage['stage']} {stage['share']:.0f}% (in {stage['taken']}), {stage['map']:.1f}"
        for stage in row["stages"]
    ]
    tried = sum(stage["tried"] for stage in row["stages"])
    return f"{'; '.join(words)}; {tried:.0f} metrics tried in a split"
