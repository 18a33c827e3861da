"""``resight report``: write the HTML report of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import say, verb

app = verb("Write the HTML report of a result.")


@app.command()
def report(
    result: Annotated[Path, typer.Argument(help="folder with result.json and rankings.csv")],
    data: Annotated[
        str | None, typer.Option(help="the evaluated dataset, folder or CSV, for pictures")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="where the named dataset lies")] = None,
    out: Annotated[Path | None, typer.Option(help="the HTML file; by default in RESULT")] = None,
) -> None:
    """Write one self-contained page: figures, curves, ranked lists with the worst first."""
    from resight import datasets
    from resight.report import write
    from resight.report.result_files import read_result

    document = read_result(result)
    sightings = None if data is None else datasets.load(data, root=root)
    rankings = result / "rankings.csv" if sightings is not None else None
    page = out or result / "report.html"
    write(page, document, sightings, rankings, f"resight report {result}")
    if sightings is None:
        say("without --data the report has no pictures")
    print(page)
