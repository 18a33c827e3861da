"""``resight reproduce``: measure the paper's tables from raw images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import print_json, say, verb

app = verb("Measure the paper's tables from raw images.")


@app.command()
def reproduce(
    data: Annotated[Path, typer.Option(help="folder that holds the datasets")],
    tables: Annotated[
        list[str] | None, typer.Argument(help="table1 ... table7, or all", show_default="all")
    ] = None,
    out: Annotated[Path, typer.Option(help="features and finished runs are kept here")] = Path(
        "reproduce"
    ),
    page: Annotated[
        Path | None, typer.Option(help="also write the tables as a Markdown page")
    ] = None,
    slow: Annotated[
        bool, typer.Option("--slow", help="also MLAPG on CUHK01, which takes hours")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="measure this version only, such as auto; show what is there of others"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; one per core")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Print each table's rows as measured here beside the figures printed in the paper.

    An interrupted run goes on where it stopped, and a second run is quick.
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
        say(f"written: {page}")
    if json:
        print_json(document)
    else:
        print(text)
