"""``resight evaluate``: measure learners on a dataset or on one's own folders."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.experiments.config import EvaluateConfig
    from resight.experiments.results import Result
    from resight.features.store import Features

app = verb("Measure learners on a dataset or on your own folders.")


@app.command()
def evaluate(
    data: Annotated[
        str | None, typer.Argument(help="a dataset's name, a folder of images or a CSV")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="where the named dataset lies")] = None,
    descriptor: Annotated[
        str | None, typer.Option(help="'+' puts descriptors side by side, ',' separates runs")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="learners, separated by ','; kxqda:cv chooses its setting")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="learner.name=value, such as kxqda.reg=1e-3")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="name of a protocol")] = None,
    splits: Annotated[Path | None, typer.Option(help="your own splits, a JSON file")] = None,
    features: Annotated[
        Path | None, typer.Option(help="your own vectors (.npy, .csv, .mat) instead of descriptors")
    ] = None,
    mirror: Annotated[bool, typer.Option("--mirror", help="average over mirror images")] = False,
    rerank: Annotated[
        str | None, typer.Option(help="add re-ranked rows: k-reciprocal, cross-view")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="also measure how true stated probabilities are")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="also measure with fewer labelled people")
    ] = False,
    people: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="numbers of people for --curve; by default halvings"),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with these settings")] = None,
    store: Annotated[Path, typer.Option(help="feature store")] = Path("features"),
    out: Annotated[Path | None, typer.Option(help="folder for result, rankings, report")] = None,
    explain: Annotated[
        int, typer.Option(min=0, help="first matches that the report explains, right and wrong")
    ] = 4,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; one per core")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler for extraction and landmarks"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Fit learners on the training people of each split and rank the others.

    Prints rank 1, 5, 10, 20 and mAP in percent, mean and standard deviation over splits. Exit
    code 1 if some images could not be used.
    """
    from resight.experiments.config import checked_config, read_config
    from resight.experiments.evaluate import DiagnosticsError
    from resight.experiments.evaluate import evaluate as measure
    from resight.workers import executors

    given: dict[str, Any] = {
        "dataset": data,
        "root": root,
        "descriptors": descriptor.split(",") if descriptor else None,
        "learners": learner.split(",") if learner else None,
        "params": _params(param or []) or None,
        "protocol": protocol,
        "splits": splits,
        "features": features,
        "mirror": mirror or None,
        "rerank": rerank.split(",") if rerank else None,
    }
    settings = read_config(config) if config else {}
    settings |= {key: value for key, value in given.items() if value is not None}
    checked = checked_config(settings)
    plans, sizes = checked.plans(), _sizes(people)
    sightings, vectors = _inputs(checked, cluster is not None)
    refusal = None
    try:
        with nullcontext() if cluster is None else executors.cluster(cluster) as workers:
            result = measure(
                sightings,
                descriptor=checked.descriptors,
                features=vectors,
                learner=plans,
                protocol=checked.protocol,
                splits=checked.splits,
                mirror=checked.mirror,
                calibrate=calibrate,
                curve=sizes or curve,
                store=store,
                out=out,
                explain=explain,
                jobs=jobs,
                executor=workers,
            )
    except DiagnosticsError as error:  # what was measured is printed and kept all the same
        result, refusal = error.result, error
    _print(result, sightings.name, json)
    if out is not None:
        from resight.report import write

        command = shlex.join(["resight", *sys.argv[1:]])
        write(out / "report.html", result.document, sightings, out / "rankings.csv", command)
        say(f"written: {out / 'result.json'}, {out / 'rankings.csv'}, {out / 'report.html'}")
    if refusal is not None:
        raise refusal
    if result.failures:
        for failure in result.failures[:20]:
            say(f"left out: {failure.path}: {failure.reason}")
        say(f"{len(result.failures)} images could not be used")
        raise typer.Exit(1)


def _inputs(settings: EvaluateConfig, on_cluster: bool) -> tuple[Sightings, Features | None]:
    from resight import datasets
    from resight.errors import InputError

    if settings.features is not None:
        from resight.features.vectors import load_vectors

        if on_cluster or settings.mirror:
            raise InputError(
                "--cluster and --mirror are about describing images; with --features nothing is "
                "described, so leave them out"
            )
        vectors, sightings = load_vectors(settings.features, labels=settings.dataset)
        return sightings, vectors
    if settings.dataset is None:
        raise InputError("name a dataset, a folder or a CSV to evaluate, or give --features FILE")
    return datasets.load(settings.dataset, root=settings.root), None


def _sizes(words: str | None) -> list[int] | None:
    if words is None:
        return None
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--people {words}: write numbers, such as 25,50,100") from None


def _params(words: list[str]) -> dict[str, dict[str, Any]]:
    from resight.registry import parse_params

    params: dict[str, dict[str, Any]] = {}
    for name, value in parse_params(words).items():
        learner, dot, key = name.partition(".")
        if not dot:
            raise typer.BadParameter(f"{name}: write learner.name=value, such as kxqda.reg=1e-3")
        params.setdefault(learner, {})[key] = value
    return params


def _print(result: Result, name: str, as_json: bool) -> None:
    document: dict[str, Any] = result.document
    for run in document["runs"]:
        for text in run["warnings"]:
            say(f"{run['title']}: {text}")
    if as_json:
        print_json(document)
        return
    from resight.experiments.diagnostics import diagnostics_text
    from resight.experiments.tables import notes

    protocol = document["protocol"]
    print(
        f"{name}: {protocol['name']}, {protocol['splits']} splits, "
        f"{protocol['train_people']} people to learn from, {protocol['query']} queries, "
        f"{protocol['gallery']} in the gallery"
    )
    print(result)
    for more in (*notes(document), diagnostics_text(document)):
        if more:
            print(f"\n{more}")
