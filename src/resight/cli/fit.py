"""``resight fit``: train a model on labelled sightings and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from resight import plans
from resight.cli import _common as common
from resight.cli._common import answer, count, flag, option, say

_SET_BY_MODEL = ("descriptor", "learner", "param", "landmarks", "features", "mirror", "result")
_RESULT = (
    "Train what was best in an evaluation (its --out folder); --learner and --descriptor pick "
    "another row"
)
_SET_BY_RESULT = ("param", "landmarks", "mirror")


def fit(
    ctx: typer.Context,
    out: Path = option(..., "DIR", "Output folder of the model"),
    data: common.DataOrNone = None,
    root: common.Root = None,
    result: Path | None = option(None, "RESULT", _RESULT, "no evaluation", "--from"),
    descriptor: common.Descriptor = plans.DESCRIPTOR,
    learner: common.Learner = None,
    param: common.Params = None,
    landmarks: int | None = option(
        None, "N", "Train kxqda on N landmark features; chooses reg unless given", "exact", min=1
    ),
    add: Path | None = option(
        None, "MODEL", "Add these people to a landmark or irs model", "a new model"
    ),
    calibrate: bool = typer.Option(
        True, help="Calibrate distances to probabilities on held-out people"
    ),
    features: common.OwnVectors = None,
    embed_network: bool = flag(
        "--embed-network", "Store the network files in the model, not just names and digests"
    ),
    mirror: common.Mirror = plans.MIRROR,
    store: common.Store = Path("features"),
    jobs: common.Jobs = None,
    cluster: common.Cluster = None,
    json: common.Json = False,
) -> None:
    """Train on every labelled sighting (except distractors and junk) and save the model.

    The learner camel needs no labels and also uses sightings of unknown people.
    With at least 20 people seen by two cameras the model is also calibrated: searches then show
    probabilities and say who is probably not in the gallery.
    """
    from resight.descriptors.network import SUFFIX, Network
    from resight.features.store import FeatureStore
    from resight.models.fitting import add_people, fit_model
    from resight.models.model import Model
    from resight.models.training import training_rows

    workers = common.executor(jobs, cluster)
    for name in common.given(ctx, *_SET_BY_MODEL) if add is not None else ():
        word = "from" if name == "result" else name
        raise typer.BadParameter(f"--{word} is fixed by the model given with --add")
    # Wrong names are refused before anything is read.
    plan = None if learner is None else _plan(learner, param or [], landmarks)
    describing = bool(common.given(ctx, "descriptor", "mirror", "cluster"))
    if result is not None:
        for name in common.given(ctx, *_SET_BY_RESULT):
            raise typer.BadParameter(f"--{name} is fixed by the result given with --from")
        named = descriptor if common.given(ctx, "descriptor") else None
        plan, descriptor, mirror, features = _measured(result, learner, named, features)
        describing = cluster is not None
    sightings, vectors = common.inputs(data, root, features, describing)
    if embed_network:  # refused, if it may not be, before anything is fitted
        files = [word for word in map(str.strip, descriptor.split("+")) if word.endswith(SUFFIX)]
        if not files:
            raise typer.BadParameter("--embed-network: none of the descriptors is a network")
        for file in files:
            Network(file).check_embedding()
    with workers:
        if add is not None:
            fitted = add_people(Model.load(add), sightings, FeatureStore(store), workers)
        else:
            if plan is None:
                recipe = plans.learner_for(len(training_rows(sightings)))
                plan = _plan(recipe, param or [], landmarks)
            how: dict[str, Any] = {"mirror": mirror, "executor": workers, "calibrate": calibrate}
            kept = FeatureStore(store)
            fitted = fit_model(sightings, kept, descriptor, plan, features=vectors, **how)
    for network in fitted.model.networks if embed_network else ():
        network.embed = True
    fitted.model.save(out)
    name = "kxqda" if plan is None else plan.word
    facts = {
        "schema": "resight.fit/1",
        "model": str(out),
        "learner": name,
        "people": fitted.n_people,
        "sightings": fitted.n_sightings,
        "fingerprint": fitted.model.fingerprint,
        "calibrated": fitted.uncalibrated is None,
        "uncalibrated": fitted.uncalibrated,
        "failures": [failure._asdict() for failure in fitted.failures],
    }
    if fitted.decision is not None:
        chosen, candidates, *_ = fitted.decision
        facts |= {"chosen": chosen, "candidates": candidates, "why": fitted.decision.sentence}
    if fitted.uncalibrated is not None:
        say(f"not calibrated, so searches show no probabilities: {fitted.uncalibrated}")
    sightings_of = f"{count(fitted.n_sightings, 'sighting')} of {fitted.n_people:,} people"
    answer(json, facts, f"saved {out}: {name} trained on {sightings_of}")
    common.report_failures(fitted.failures)


def _plan(word: str, assignments: list[str], landmarks: int | None) -> plans.Plan:
    """Read --learner, --param and --landmarks."""
    if landmarks is not None:
        given = {one.partition("=")[0].rpartition(".")[2] for one in assignments}
        assignments = [*assignments, f"landmarks={landmarks}"]
        if word in ("kxqda", plans.LEARNER):
            word = "kxqda" if "reg" in given else "kxqda:cv"
    plan, *others = plans.plans_of(word, plans.params_by_learner(assignments, word))
    if others:
        raise typer.BadParameter(f"--learner {word}: fit trains one; evaluate compares several")
    return plan


def _measured(
    result: Path, learner: str | None, descriptor: str | None, features: Path | None
) -> tuple[plans.Plan, str, bool, Path | None]:
    """Return what an evaluation measured: plan, descriptors, mirror and file of own vectors."""
    from resight._files import digest_of_file
    from resight.experiments.results import fit_of

    fit = fit_of(result, learner, descriptor)
    file = features or (Path(fit["features"]) if fit["features"] else None)
    if file is not None and file.is_file() and digest_of_file(file) != fit["digest"]:
        say(f"{file} has changed since it was evaluated; training on its current contents")
    plan = plans.plan_of(fit["learner"], fit["params"])
    return plan, fit["descriptor"] or plans.DESCRIPTOR, fit["mirror"], file
