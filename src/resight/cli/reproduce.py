"""``resight reproduce``: reproduce the paper's tables from raw images."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from resight.cli._common import Jobs, Json, answer, flag, option, say, write


def reproduce(
    data: Path = option(..., "DIR", "Folder that contains the datasets"),
    tables: list[str] | None = typer.Argument(
        None, help="Tables: table1 to table7", show_default="all"
    ),
    out: Path = option(Path("reproduce"), "DIR", "Output folder for features and finished runs"),
    page: Path | None = option(None, "FILE", "Also write a Markdown page", "no page"),
    slow: bool = flag("--slow", "Include MLAPG on CUHK01, which takes hours"),
    only: list[str] | None = option(
        None, "VERSION", "Run only this version and show stored results of others", "all"
    ),
    network: Path | None = option(
        None, "FILE", "Measure this ONNX network on the paper's datasets instead", "the tables"
    ),
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Print each table's measured rows next to the paper's figures.

    With --network: what labelled people bring on top of a network of your own. Finished runs are
    kept: run again to resume.
    """
    from resight.descriptors import Network
    from resight.reproduce.measuring import Bench
    from resight.reproduce.measuring import reproduce as measure
    from resight.reproduce.networks import measure_network
    from resight.reproduce.networks import page_of as networks_page
    from resight.reproduce.page import page_of
    from resight.reproduce.paper import select_tables
    from resight.workers.executors import local

    if network is not None and (tables or only or slow):
        raise typer.BadParameter("--network measures tables of its own; name no others with it")
    chosen = select_tables(tables or [])
    n_jobs = jobs or os.cpu_count() or 1
    with local(n_jobs) as workers:
        bench = Bench(data, out, n_jobs, workers, say)
        if network is None:
            documents, text_of = iter([measure(chosen, bench, slow=slow, only=only or ())]), page_of
        else:  # the page grows with each dataset
            documents, text_of = measure_network(Network(network), bench), networks_page
        for document in documents:
            text = text_of(document)
            if page is not None:
                write(page, text)
    answer(json, document, text)
