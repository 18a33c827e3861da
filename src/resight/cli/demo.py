"""``resight demo``: the whole workflow in a minute, on synthetic people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from resight.cli._common import Jobs, Json, option, print_json, say, verb

app = verb("Run the whole workflow in a minute on synthetic people.")

DESCRIPTOR, LEARNERS = "lomo-dagger", "kxqda:cv,xqda,euclidean"
N_PEOPLE, IMAGES_PER_CAMERA, SEED = 100, 2, 7


@app.command()
def demo(
    out: Annotated[Path, option("DIR", "Output folder")] = Path("demo"),
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Generate images, evaluate, write a report and train a model; nothing is downloaded."""
    from resight.datasets.synthetic import draw_cameras
    from resight.experiments.evaluate import evaluate
    from resight.features.store import FeatureStore
    from resight.models.fitting import fit_model
    from resight.report import write
    from resight.workers.executors import local

    say("generating two cameras, computing descriptors, evaluating on 10 splits ...")
    images, folder, report = out / "cameras", out / "result", out / "report.html"
    sightings = draw_cameras(images, N_PEOPLE, images_per_camera=IMAGES_PER_CAMERA, seed=SEED)
    store = FeatureStore(out / "features")
    with local(jobs) as workers:
        result = evaluate(
            sightings,
            descriptor=DESCRIPTOR,
            learner=LEARNERS,
            store=store,
            out=folder,
            explain=4,
            jobs=jobs,
            executor=workers,
        )
        write(report, result.document, sightings, folder / "rankings.csv", "resight demo")
        fitted = fit_model(sightings, store, DESCRIPTOR, "kxqda", {}, executor=workers)
    fitted.model.save(out / "model")
    if json:
        print_json(result.document)
    else:
        print(result)
    say(f"\nreport: {report}")
    gallery = out / "gallery"
    say("to search these people on a web page:")
    say(f"  resight gallery create {gallery} --model {out / 'model'}")
    say(f"  resight gallery add {gallery} {images}")
    say(f"  resight serve {gallery}")
