"""``resight reproduce``: reproduce the paper's tables from raw images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import ConfigurableCommand, Jobs, Json, print_json, say, verb

app = verb("Reproduce the paper's tables from raw images.")


@app.command(cls=ConfigurableCommand)
def reproduce(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder that contains the datasets")],
    tables: Annotated[
        list[str] | None, typer.Argument(help="table1 to table7, or all", show_default="all")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Output folder for features and finished runs")
    ] = Path("reproduce"),
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the tables as a Markdown page too", show_default="no page"
        ),
    ] = None,
    slow: Annotated[
        bool, typer.Option("--slow", help="Include MLAPG on CUHK01, which takes hours")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION",
            help="Run only this version, such as auto, and show stored results of the others",
            show_default="every version",
        ),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Print each table's measured rows next to the paper's figures.

    Finished runs are kept: run again to resume.
    """
    from resight._files import atomic_write
    from resight.reproduce.measuring import reproduce as measure
    from resight.reproduce.page import page_of
    from resight.reproduce.paper import select_tables
    from resight.workers.executors import local

    chosen = select_tables(tables or [])
    n_jobs = jobs or os.cpu_count() or 1
    with local(n_jobs) as workers:
        document = measure(
            chosen,
            data,
            out,
            slow=slow,
            only=only or (),
            n_jobs=n_jobs,
            executor=workers,
            say=say,
        )
    text = page_of(document)
    if page is not None:
        with atomic_write(page, "w") as stream:
            stream.write(text)
        say(f"wrote {page}")
    if json:
        print_json(document)
    else:
        print(text)
