"""``resight evaluate``: evaluate learners on a dataset or on your own folders."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import (
    Cluster,
    ConfigurableCommand,
    Jobs,
    Json,
    Mirror,
    Root,
    Store,
    print_json,
    report_failures,
    say,
    verb,
)

if TYPE_CHECKING:
    from resight.experiments.config import EvaluateConfig
    from resight.experiments.evaluate import Evaluation
    from resight.features.store import Features

app = verb("Evaluate learners on a dataset or on your own folders.")


@app.command(cls=ConfigurableCommand)
def evaluate(
    data: Annotated[
        str | None,
        typer.Argument(
            help="Dataset name, folder of images, or CSV table of sightings",
            show_default="none, with --features",
        ),
    ] = None,
    root: Root = None,
    descriptor: Annotated[
        str,
        typer.Option(
            metavar="NAME[+NAME...]", help="Descriptors, concatenated with '+'; ',' separates runs"
        ),
    ] = "gog",
    learner: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="Learners; kxqda:cv chooses its settings by cross-validation",
        ),
    ] = "kxqda",
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEARNER.NAME=VALUE",
            help="Parameter of a learner, such as kxqda.reg=1e-3 (repeatable)",
            show_default="the learner's defaults",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Protocol", show_default="the dataset's usual one"),
    ] = None,
    splits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Your own splits (JSON)", show_default="those of the protocol"
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your own vectors (.npy, .csv, .mat) instead of descriptors",
            show_default="compute descriptors",
        ),
    ] = None,
    mirror: Mirror = False,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD[,METHOD]",
            help="Add re-ranked rows: k-reciprocal, cross-view",
            show_default="none",
        ),
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Also measure how well calibrated probabilities are")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also measure with fewer labelled people")
    ] = False,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]",
            help="Numbers of people for --curve",
            show_default="all, half, a quarter, ...",
        ),
    ] = None,
    store: Store = Path("features"),
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Output folder for result, rankings and report",
            show_default="print only",
        ),
    ] = None,
    explain: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="How many matches, right and wrong, the report explains"
        ),
    ] = 4,
    jobs: Jobs = None,
    cluster: Cluster = None,
    json: Json = False,
) -> None:
    """Train learners on the training people of each split and rank the others.

    Prints rank 1, 5, 10, 20 and mAP in percent, mean and standard deviation over splits. The exit
    code is 1 if some images could not be used.
    """
    from resight.experiments.config import checked_config

    given: dict[str, Any] = {
        "dataset": data,
        "root": root,
        "descriptors": descriptor.split(","),
        "learners": learner.split(","),
        "params": _params(param or []),
        "protocol": protocol,
        "splits": splits,
        "features": features,
        "mirror": mirror,
        "rerank": rerank.split(",") if rerank else [],
    }
    checked = checked_config(given)
    sizes = _sizes(people)
    if calibrate or curve or sizes:
        from resight.experiments.learning_curve import require_fixed

        for plan in checked.plans():
            require_fixed(plan)
    found = _evaluate(checked, store, jobs or os.cpu_count() or 1, cluster)
    refusal = None
    if calibrate or curve or sizes:
        from resight.errors import InputError
        from resight.experiments.diagnostics import add_studies

        try:
            add_studies(
                found,
                _feature_sets(found, checked, store),
                checked.plans(),
                calibrate=calibrate,
                curve=curve or bool(sizes),
                sizes=sizes,
                n_jobs=jobs or os.cpu_count() or 1,
            )
        except InputError as error:  # results so far are printed and saved first
            refusal = error
    _print(found, json)
    if out is not None:
        n_explained = 0 if checked.features is not None else explain
        _save(found, out, store, n_explained, checked.mirror)
    if refusal is not None:
        raise refusal
    report_failures("skipped", [(f.path, f.reason) for f in found.failures])


def _evaluate(settings: EvaluateConfig, store: Path, jobs: int, cluster: str | None) -> Evaluation:
    from resight import datasets
    from resight.errors import InputError
    from resight.experiments.evaluate import evaluate, evaluate_vectors
    from resight.features.store import FeatureStore
    from resight.workers import executors

    plans = settings.plans()
    splits = str(settings.splits) if settings.splits else None
    if settings.features is not None:
        from resight.features.vectors import load_vectors

        if cluster is not None or settings.mirror:
            raise InputError(
                "--cluster and --mirror apply to computing descriptors; leave them out with "
                "--features"
            )
        vectors, sightings = load_vectors(settings.features, labels=settings.dataset)
        return evaluate_vectors(
            sightings,
            vectors,
            plans,
            protocol=settings.protocol,
            splits=splits,
            n_jobs=jobs,
        )
    if settings.dataset is None:
        raise InputError(
            "give a dataset name, a folder or a CSV table to evaluate, or --features FILE"
        )
    workers = executors.local(jobs) if cluster is None else executors.cluster(cluster)
    with workers:
        return evaluate(
            datasets.load(settings.dataset, root=settings.root),
            FeatureStore(store),
            settings.descriptors,
            plans,
            protocol=settings.protocol,
            splits=splits,
            mirror=settings.mirror,
            n_jobs=jobs,
            executor=workers,
        )


def _feature_sets(found: Evaluation, settings: EvaluateConfig, store: Path) -> list[Features]:
    """Return the features of the evaluated sightings, from the store."""
    from resight.features.store import FeatureStore

    if settings.features is not None:
        from resight.features.vectors import load_vectors

        return [load_vectors(settings.features, labels=settings.dataset)[0]]
    kept = FeatureStore(store)
    return [kept.ensure(found.sightings, one, settings.mirror) for one in settings.descriptors]


def _sizes(words: str | None) -> list[int] | None:
    if words is None:
        return None
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--people {words}: give numbers, such as 25,50,100") from None


def _params(words: list[str]) -> dict[str, dict[str, Any]]:
    from resight.learners.registry import parse_params

    params: dict[str, dict[str, Any]] = {}
    for name, value in parse_params(words).items():
        learner, dot, key = name.partition(".")
        if not dot:
            raise typer.BadParameter(
                f"--param {name}: expected learner.name=value, such as kxqda.reg=1e-3"
            )
        params.setdefault(learner, {})[key] = value
    return params


def _print(found: Evaluation, as_json: bool) -> None:
    for run in found.result["runs"]:
        for text in run["warnings"]:
            say(f"{run['title']}: {text}")
    if as_json:
        print_json(found.result)
        return
    from resight.experiments.diagnostics import studies_text
    from resight.experiments.tables import notes, results_table

    protocol = found.result["protocol"]
    print(
        f"{found.sightings.name}: {protocol['name']}, {protocol['splits']} splits, "
        f"{protocol['train_people']} training people, {protocol['query']} queries, "
        f"gallery of {protocol['gallery']}"
    )
    print(results_table(found.result))
    for more in (*notes(found.result), studies_text(found)):
        if more:
            print(f"\n{more}")


def _save(found: Evaluation, out: Path, store: Path, n_explained: int, mirror: bool) -> None:
    from resight.experiments.explaining import explain_matches, save_explanations
    from resight.experiments.results import save
    from resight.features.store import FeatureStore
    from resight.report import write

    save(out, found.result, found.sightings, found.runs)
    told = explain_matches(found, FeatureStore(store), n_explained, mirror)
    save_explanations(out, told)
    command = shlex.join(["resight", *sys.argv[1:]])
    write(out / "report.html", found.result, found.sightings, out / "rankings.csv", command)
    say(f"wrote {out / 'result.json'}, {out / 'rankings.csv'}, {out / 'report.html'}")
