"""``resight demo``: the whole workflow in a minute, on synthetic people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from resight.cli._common import Jobs, Json, answer, flag, option, say
from resight.plans import LEARNER

# How hard the demo is, was decided before any learner ran on it: the first two cameras of the first
# drawn town (seed 0), as `draw_cameras` draws them by default, one picture in each; and 80 people,
# 40 to learn from and 40 to look for: as many as can be described and chosen on in a minute.
N_PEOPLE, SEED = 80, 0
LEARNERS = f"{LEARNER},kxqda,xqda,euclidean"  # the recipe, the paper's setting, two baselines


def demo(
    out: Path = option(Path("demo"), "DIR", "Output folder"),
    jobs: Jobs = None,
    json: Json = False,
    serve: bool = flag("--serve", "Then open the gallery's web page"),
) -> None:
    """Generate images, evaluate, write a report and fill a gallery; nothing is downloaded."""
    from resight.datasets.synthetic import draw_cameras
    from resight.experiments.evaluate import evaluate
    from resight.features.store import FeatureStore
    from resight.gallery import Gallery
    from resight.models.fitting import fit
    from resight.report import write
    from resight.workers.executors import local

    say("generating two cameras, computing descriptors, evaluating on 10 splits ...")
    images, folder, report = out / "cameras", out / "result", out / "report.html"
    sightings = draw_cameras(images, N_PEOPLE, seed=SEED)
    store = FeatureStore(out / "features")
    with local(jobs) as workers:
        how: dict[str, Any] = {"jobs": jobs, "executor": workers}
        result = evaluate(sightings, learner=LEARNERS, store=store, out=folder, **how)
        write(report, result.document, sightings, folder / "rankings.csv", "resight demo")
        model = fit(sightings, store=store, executor=workers)
        model.save(out / "model")
        place = out / "gallery"  # perhaps that of an earlier demo
        gallery = Gallery.open(place) if place.exists() else Gallery.create(place, model)
        gallery.add(sightings, store=store)
    answer(json, result.document, f"{result}\n\n{result.winner['sentence']}")
    say(f"report: {report}")
    if serve:
        from resight.web.serving import Settings, run

        run(gallery, Settings(open_browser=True), tell=lambda words: typer.echo(words, err=True))
    say(f"to search these people on a web page: resight serve {out / 'gallery'}")
