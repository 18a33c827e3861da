"""``resight demo``: the whole workflow in a minute, on synthetic people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from resight.cli._common import Jobs, Json, option, print_json, say, verb

app = verb("Run the whole workflow in a minute on synthetic people.")


@app.command()
def demo(
    out: Annotated[Path, option("DIR", "Output folder")] = Path("demo"),
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Generate images, evaluate, write a report and train a model; nothing is downloaded."""
    from resight.experiments.demo import run_demo
    from resight.experiments.tables import results_table
    from resight.workers.executors import local

    n_jobs = jobs or os.cpu_count() or 1
    say("generating two cameras, computing descriptors, evaluating on 10 splits ...")
    with local(n_jobs) as workers:
        made = run_demo(out, n_jobs=n_jobs, executor=workers)
    result = made.evaluation.result
    if json:
        print_json(result)
    else:
        print(results_table(result))
    say(f"\nreport: {made.report}")
    gallery = out / "gallery"
    say("to search these people on a web page:")
    say(f"  resight gallery create {gallery} --model {made.model}")
    say(f"  resight gallery add {gallery} {made.images}")
    say(f"  resight serve {gallery}")
