"""``resight reproduce``: reproduce the paper's tables from raw images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from resight.cli._common import Jobs, Json, answer, flag, option, say, verb, write

if TYPE_CHECKING:
    from resight.reproduce.measuring import Bench

app = verb("Reproduce the paper's tables from raw images.")


@app.command()
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
    from resight.reproduce.measuring import Bench
    from resight.reproduce.measuring import reproduce as measure
    from resight.reproduce.page import page_of
    from resight.reproduce.paper import select_tables
    from resight.workers.executors import local

    if network is not None and (tables or only or slow):
        raise typer.BadParameter("--network measures tables of its own; name no others with it")
    chosen = select_tables(tables or [])
    n_jobs = jobs or os.cpu_count() or 1
    with local(n_jobs) as workers:
        bench = Bench(data, out, n_jobs, workers, say)
        if network is not None:
            document, text = _networks(network, bench, page)
        else:
            document = measure(chosen, bench, slow=slow, only=only or ())
            text = page_of(document)
    if page is not None:
        write(page, text)
    answer(json, document, text)


def _networks(file: Path, bench: Bench, page: Path | None) -> tuple[dict[str, Any], str]:
    """Measure a network; the page grows with each dataset."""
    from resight.descriptors import Network
    from resight.reproduce.networks import measure_network, page_of

    document: dict[str, Any] = {}
    for document in measure_network(Network(file), bench):
        if page is not None:
            write(page, page_of(document))
    return document, page_of(document)
