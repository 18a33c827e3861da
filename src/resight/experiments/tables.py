"""Result documents as text tables, for terminals and Markdown pages."""

from __future__ import annotations

from html import escape
from typing import Any

COLUMNS = ("rank1", "rank5", "rank10", "rank20", "map")
HEADINGS = ("rank 1", "rank 5", "rank 10", "rank 20", "mAP")
_RERANK = "Re-ranked rows are post-processed with the whole gallery; compare them with each other."


def results_table(result: dict[str, Any], html: bool = False) -> str:
    """Return a table of a result document, in percent: Markdown, or HTML."""
    rows = [[run["title"], *summary_cells(run["summary"])] for run in result["runs"]]
    return (_html_table if html else markdown_table)(("learner", *HEADINGS), rows)


def summary_cells(summary: dict[str, Any]) -> list[str]:
    """Return the cells below `HEADINGS`: means and, for rank 1, the spread."""
    cells = [f"{summary[name]['mean']:.1f}" for name in COLUMNS]
    spread = summary["rank1"]["sd"]
    return [cells[0] + ("" if spread is None else f" ± {spread:.1f}"), *cells[1:]]


def curve_table(curve: dict[str, Any]) -> str:
    """Return a Markdown table of a learning curve, in percent."""
    rows = [[str(point["people"]), *summary_cells(point)] for point in curve["points"]]
    return markdown_table(("people", *HEADINGS), rows)


def diagnostics_text(document: dict[str, Any]) -> str:
    """Tell what ``--calibrate`` and ``--curve`` added to a result document."""
    parts, rows = [], []
    for run in document["runs"]:
        if curve := run.get("learning_curve"):
            title = f"{run['title']}: how many people must be labelled"
            parts += [title, curve_table(curve), curve["sentence"]]
        if sure := run.get("confidence"):
            first, gone = sure["first_match"], sure["not_in_gallery"]
            loss = [f"{first[x]:.3f} ({first[f'{x}_constant']:.3f})" for x in ("log_loss", "brier")]
            rates = [f"{100 * gone[x]:.1f}%" for x in ("identified", "false_accepts")]
            rows.append([run["title"], f"{first['ece']:.3f}", *loss, *rates])
    if rows:
        headings = ("how sure (best constant)", "ECE", "log-loss", "Brier", "DIR", "FAR of 10%")
        parts.append(markdown_table(headings, rows))
    return "\n\n".join(parts)


def notes(result: dict[str, Any]) -> list[str]:
    """Return what must be said beside the table of a result document."""
    found = [*map(_choice_note, result["runs"]), _learning_note(result)]
    if any(run["rerank"] for run in result["runs"]):
        found.insert(0, _RERANK)
    return [note for note in found if note is not None]


def _choice_note(run: dict[str, Any]) -> str | None:
    """Say what `auto` chose, in the mean over splits."""
    shares: dict[str, float] = {}
    for trial in run.get("trials", ()):
        parts = trial.get("chosen", {}).get("parts", ())
        total = sum(part["weight"] for part in parts) * len(run["trials"])
        for part in parts:
            share = part["weight"] / total
            shares[part["learner"]] = shares.get(part["learner"], 0.0) + share
    if not shares or run["rerank"]:
        return None
    ordered = sorted(shares.items(), key=lambda one: -one[1])
    words = ", ".join(f"{100 * share:.0f}% {learner}" for learner, share in ordered)
    return f"{run['title']} chose on each split's training people: {words} in the mean."


def _learning_note(result: dict[str, Any]) -> str | None:
    """Say so where nothing that was learned is better than plain Euclidean distances."""
    rank1 = {True: -1.0, False: -1.0}  # by whether it learns nothing
    for run in result["runs"]:
        plain = run["learner"] == "euclidean"
        rank1[plain] = max(rank1[plain], run["summary"]["rank1"]["mean"])
    if rank1[False] < 0 or rank1[False] >= rank1[True]:
        return None
    return (
        f"Learning does not pay here: {result['protocol']['train_people']} people to learn from "
        "gave nothing better than Euclidean distances. Label more people (--curve shows what they "
        "bring), or let --learner kxqda:cv or auto choose how strongly to regularise."
    )


def markdown_table(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    """Return an aligned Markdown table: first column left, the others right."""
    table = [list(headings), *rows]
    widths = [max(2, *(len(row[i]) for row in table)) for i in range(len(headings))]
    table.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    lines = []
    for first, *others in table:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append(f"| {' | '.join([first.ljust(widths[0]), *cells])} |")
    return "\n".join(lines)


def _html_table(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    table = [("th", headings), *(("td", row) for row in rows)]
    lines = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) for tag, cells in table)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
