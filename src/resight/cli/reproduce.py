"""``resight reproduce``: reproduce the paper's tables from raw images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import Jobs, Json, flag, option, print_json, say, verb

app = verb("Reproduce the paper's tables from raw images.")


@app.command()
def reproduce(
    data: Annotated[Path, option("DIR", "Folder that contains the datasets")],
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables: table1 to table7", show_default="all")
    ] = None,
    out: Annotated[Path, option("DIR", "Output folder for features and finished runs")] = Path(
        "reproduce"
    ),
    page: Annotated[Path | None, option("FILE", "Also write a Markdown page", "no page")] = None,
    slow: Annotated[bool, flag("--slow", "Include MLAPG on CUHK01, which takes hours")] = False,
    only: Annotated[
        list[str] | None,
        option("VERSION", "Run only this version and show stored results of others", "all"),
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
            chosen, data, out, slow=slow, only=only or (), n_jobs=n_jobs, executor=workers, say=say
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
