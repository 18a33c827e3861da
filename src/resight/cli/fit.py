"""``resight fit``: train a model on labelled sightings and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from resight.cli import _common as common
from resight.cli._common import count, flag, option, print_json, say, verb

_SET_BY_MODEL = ("descriptor", "learner", "param", "landmarks", "features", "mirror")

app = verb("Train a model on labelled sightings and save it.")


@app.command()
def fit(
    ctx: typer.Context,
    out: Annotated[Path, option("DIR", "Output folder of the model")],
    data: common.DataOrNone = None,
    root: common.Root = None,
    descriptor: common.Descriptor = "gog+lomo-dagger",
    learner: Annotated[str, option("NAME", "Learner")] = "kxqda",
    param: Annotated[
        list[str] | None,
        option("NAME=VALUE", "Learner parameter, as reg=1e-3 (repeatable)", "its defaults"),
    ] = None,
    landmarks: Annotated[
        int | None,
        option("N", "Train kxqda on N landmark features; chooses reg unless given", "exact", min=1),
    ] = None,
    add: Annotated[
        Path | None, option("MODEL", "Add these people to a landmark model", "a new model")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option(help="Calibrate distances to probabilities on held-out people")
    ] = True,
    features: common.OwnVectors = None,
    embed_network: Annotated[
        bool,
        flag("--embed-network", "Put networks into the model, rather than their names and digests"),
    ] = False,
    mirror: common.Mirror = False,
    store: common.Store = Path("features"),
    jobs: common.Jobs = None,
    cluster: common.Cluster = None,
    json: common.Json = False,
) -> None:
    """Train on every labelled sighting (except distractors and junk) and save the model.

    With at least 20 people seen by two cameras the model is also calibrated: searches then show
    probabilities and say who is probably not in the gallery.
    """
    from resight.features.store import FeatureStore
    from resight.models.adding_people import add_people
    from resight.models.fitting import fit_model
    from resight.models.model import Model
    from resight.registry import parse_params

    workers = common.executor(jobs, cluster)
    for name in common.given(ctx, *_SET_BY_MODEL) if add is not None else ():
        raise typer.BadParameter(f"--{name} is fixed by the model given with --add")
    describing = bool(common.given(ctx, "descriptor", "mirror", "cluster"))
    sightings, vectors = common.inputs(data, root, features, describing)
    if embed_network:
        _check_embedding(descriptor)
    with workers:
        if add is not None:
            fitted = add_people(Model.load(add), sightings, FeatureStore(store), workers)
        else:
            fitted = fit_model(
                sightings,
                FeatureStore(store),
                descriptor,
                learner,
                parse_params(param or []) | ({} if landmarks is None else {"landmarks": landmarks}),
                features=vectors,
                mirror=mirror,
                executor=workers,
                calibrate=calibrate,
            )
    for network in fitted.model.networks if embed_network else ():
        network.embed = True
    fitted.model.save(out)
    facts = {
        "schema": "resight.fit/1",
        "model": str(out),
        "people": fitted.n_people,
        "sightings": fitted.n_sightings,
        "fingerprint": fitted.model.fingerprint,
        "calibrated": fitted.uncalibrated is None,
        "uncalibrated": fitted.uncalibrated,
        "failures": [failure._asdict() for failure in fitted.failures],
    }
    if fitted.choice is not None:
        facts |= {"chosen": fitted.choice.best.params(), "candidates": fitted.choice.table()}
    if fitted.uncalibrated is not None:
        say(f"not calibrated, so searches show no probabilities: {fitted.uncalibrated}")
    if json:
        print_json(facts)
    else:
        sightings_of = f"{count(fitted.n_sightings, 'sighting')} of {fitted.n_people:,} people"
        print(f"saved {out}: {learner} trained on {sightings_of}")
    common.report_failures(fitted.failures)


def _check_embedding(descriptors: str) -> None:
    """Refuse a model that may not carry its networks before it is fitted."""
    from resight.descriptors.network import SUFFIX, Network

    files = [word.strip() for word in descriptors.split("+") if word.strip().endswith(SUFFIX)]
    if not files:
        raise typer.BadParameter("--embed-network: none of the descriptors is a network (.onnx)")
    for file in files:
        Network(file).check_embedding()
