"""``resight fit``: learn a model from labelled sightings and save it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import print_json, say, verb

_SET_BY_MODEL = ("descriptor", "learner", "param", "landmarks", "mirror")

app = verb("Learn a model from labelled sightings and save it.")


@app.command()
def fit(
    ctx: typer.Context,
    data: Annotated[str, typer.Argument(help="a dataset's name, a folder of images or a CSV")],
    out: Annotated[Path, typer.Option(help="folder of the model")],
    root: Annotated[Path | None, typer.Option(help="where the named dataset lies")] = None,
    descriptor: Annotated[
        str, typer.Option(help="descriptors, put side by side with +")
    ] = "gog+lomo-dagger",
    learner: Annotated[str, typer.Option(help="the learner")] = "kxqda",
    param: Annotated[
        list[str] | None, typer.Option(help="parameter of the learner, name=value")
    ] = None,
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="learn kxqda through so many landmark features; chooses reg unless it is given",
        ),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="landmark model to which these people are added; --out gets it"
        ),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option(help="learn from held-out people what distances mean")
    ] = True,
    mirror: Annotated[bool, typer.Option("--mirror", help="average over mirror images")] = False,
    store: Annotated[Path, typer.Option(help="feature store")] = Path("features"),
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; one per core")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler for extraction and landmarks"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Fit on every labelled sighting (distractors and junk are left out) and save the model.

    With at least 20 people seen by two cameras the model also learns what its distances mean:
    searches then show probabilities and tell who is probably not in the gallery.
    """
    from resight import datasets, load
    from resight.features.store import FeatureStore
    from resight.models.adding_people import add_people
    from resight.models.fitting import fit_model
    from resight.registry import parse_params
    from resight.workers import executors

    if jobs is not None and cluster is not None:
        raise typer.BadParameter("give --jobs (this machine) or --cluster, not both")
    if add is not None:
        _refuse_given(ctx)
    sightings = datasets.load(data, root=root)
    workers = (
        executors.local(jobs or os.cpu_count() or 1)
        if cluster is None
        else executors.cluster(cluster)
    )
    with workers:
        if add is not None:
            fitted = add_people(load(add), sightings, FeatureStore(store), workers)
        else:
            fitted = fit_model(
                sightings,
                FeatureStore(store),
                descriptor,
                learner,
                parse_params(param or []) | ({} if landmarks is None else {"landmarks": landmarks}),
                mirror=mirror,
                executor=workers,
                calibrate=calibrate,
            )
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
    for failure in fitted.failures[:20]:
        say(f"left out: {failure.path}: {failure.reason}")
    if fitted.uncalibrated is not None:
        say(f"the model states no probabilities: {fitted.uncalibrated}")
    if json:
        print_json(facts)
    else:
        print(f"{out}: {learner} on {fitted.n_sightings} sightings of {fitted.n_people} people")
    if fitted.failures:
        raise typer.Exit(1)


def _refuse_given(ctx: typer.Context) -> None:
    """Refuse options that a model to which people are added has decided."""
    for name in _SET_BY_MODEL:
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"with --add the model decides --{name}; leave it out")
