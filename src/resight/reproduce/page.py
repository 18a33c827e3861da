"""The measured tables as a Markdown page."""

from __future__ import annotations

from typing import Any

from resight.experiments.tables import markdown_table
from resight.reproduce.paper import reasons

_RANKS = ("rank1", "rank5", "rank10", "rank20")


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
    return rendered("tables.md", **figures, grid=_table, compared=_compared, reasons=reasons())


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


def _compared(row: dict[str, Any]) -> str:
    """Tell what `auto` gained and reached."""
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
