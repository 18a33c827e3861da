"""``resight evaluate``: measure learners on a dataset or on one's own folders."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.experiments.config import EvaluateConfig
    from resight.experiments.evaluate import Evaluation
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
        except InputError as error:  # what was measured is printed and kept all the same
            refusal = error
    _print(found, json)
    if out is not None:
        n_explained = 0 if checked.features is not None else explain
        _save(found, out, store, n_explained, checked.mirror)
    if refusal is not None:
        raise refusal
    if found.failures:
        for failure in found.failures[:20]:
            say(f"left out: {failure.path}: {failure.reason}")
        say(f"{len(found.failures)} images could not be used")
        raise typer.Exit(1)


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
                "--cluster and --mirror are about describing images; with --features nothing is "
                "described, so leave them out"
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
        raise InputError("name a dataset, a folder or a CSV to evaluate, or give --features FILE")
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
    """Return the features of what was evaluated, from the store."""
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
        f"{protocol['train_people']} people to learn from, {protocol['query']} queries, "
        f"{protocol['gallery']} in the gallery"
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
    say(f"written: {out / 'result.json'}, {out / 'rankings.csv'}, {out / 'report.html'}")
