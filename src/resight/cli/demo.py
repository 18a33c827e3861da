"""``resight demo``: the whole flow in a minute, on cameras the package draws itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import print_json, say, verb

app = verb("Draw synthetic cameras, learn, evaluate and write a report.")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder for everything the demo makes")] = Path("demo"),
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; one per core")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Go from images to a table, a report and a model; nothing is fetched."""
    from resight.experiments.demo import run_demo
    from resight.experiments.tables import results_table
    from resight.workers.executors import local

    n_jobs = jobs or os.cpu_count() or 1
    say("drawing two cameras, describing the images, learning on 10 splits ...")
    with local(n_jobs) as workers:
        made = run_demo(out, n_jobs=n_jobs, executor=workers)
    result = made.evaluation.result
    if json:
        print_json(result)
    else:
        print(results_table(result))
    say(f"\nreport: {made.report}")
    gallery = out / "gallery"
    say("to search these people on a page:")
    say(f"  resight gallery create {gallery} --model {made.model}")
    say(f"  resight gallery add {gallery} {made.images}")
    say(f"  resight serve {gallery}")
