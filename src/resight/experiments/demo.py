"""The whole flow on cameras that the package draws itself: images to report and gallery."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from resight.datasets.synthetic import draw_cameras
from resight.experiments.evaluate import Evaluation, evaluate
from resight.experiments.explaining import explain_matches, save_explanations
from resight.experiments.results import save
from resight.experiments.runner import Plan
from resight.features.store import FeatureStore
from resight.models.fitting import fit_model
from resight.report import write
from resight.tuning.candidates import CV, CV_FOLDS
from resight.workers.executors import Executor

DESCRIPTORS = "lomo-dagger"
PLANS = (Plan("kxqda", "cv", {}, CV, CV_FOLDS), Plan("xqda"), Plan("euclidean"))
N_PEOPLE = 100
IMAGES_PER_CAMERA = 2
SEED = 7


@dataclass(frozen=True)
class Demo:
    """What the demo made, and where."""

    evaluation: Evaluation
    images: Path
    model: Path
    report: Path


def run_demo(out: Path, *, n_jobs: int = 1, executor: Executor | None = None) -> Demo:
    """Draw two cameras, extract, learn, evaluate; write report and model below `out`."""
    images, store = out / "cameras", FeatureStore(out / "features")
    sightings = draw_cameras(images, N_PEOPLE, images_per_camera=IMAGES_PER_CAMERA, seed=SEED)
    found = evaluate(sightings, store, [DESCRIPTORS], PLANS, n_jobs=n_jobs, executor=executor)
    save(out / "result", found.result, found.sightings, found.runs)
    save_explanations(out / "result", explain_matches(found, store))
    report = out / "report.html"
    rankings = out / "result" / "rankings.csv"
    write(report, found.result, found.sightings, rankings, "resight demo")
    model = out / "model"
    fit_model(sightings, store, DESCRIPTORS, "kxqda", {}, executor=executor).model.save(model)
    return Demo(found, images, model, report)
