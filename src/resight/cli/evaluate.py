"""``resight evaluate``: evaluate learners on a dataset or on your own folders."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli import _common as common
from resight.cli._common import flag, option, print_json, say, verb

if TYPE_CHECKING:
    from resight.experiments.config import EvaluateConfig
    from resight.experiments.evaluate import Evaluation
    from resight.features.store import Features

app = verb("Evaluate learners on a dataset or on your own folders.")


@app.command()
def evaluate(
    data: common.DataOrNone = None,
    root: common.Root = None,
    descriptor: Annotated[
        str, option("NAME[+NAME...]", "Descriptors, concatenated with '+'; ',' separates runs")
    ] = "gog",
    learner: Annotated[
        str, option("NAME[,NAME...]", "Learners; kxqda:cv chooses settings by cross-validation")
    ] = "kxqda",
    param: Annotated[
        list[str] | None,
        option(
            "LEARNER.NAME=VALUE",
            "Learner parameter, as kxqda.reg=1e-3 (repeatable)",
            "its defaults",
        ),
    ] = None,
    protocol: Annotated[str | None, option("NAME", "Protocol", "the dataset's first")] = None,
    splits: Annotated[
        Path | None, option("FILE", "Your own splits (JSON)", "those of the protocol")
    ] = None,
    features: Annotated[
        Path | None, option("FILE", "Your own vectors (.npy, .csv, .mat)", "compute descriptors")
    ] = None,
    mirror: common.Mirror = False,
    rerank: Annotated[
        str | None,
        option("METHOD[,METHOD]", "Add re-ranking: k-reciprocal, cross-view", "none"),
    ] = None,
    calibrate: Annotated[
        bool, flag("--calibrate", "Also measure how well calibrated probabilities are")
    ] = False,
    curve: Annotated[bool, flag("--curve", "Also measure with fewer labelled people")] = False,
    people: Annotated[
        str | None, option("N[,N...]", "Numbers of people for --curve", "all, 1/2, 1/4, ...")
    ] = None,
    store: common.Store = Path("features"),
    out: Annotated[
        Path | None, option("DIR", "Output folder for result, rankings, report", "print only")
    ] = None,
    explain: Annotated[
        int, option("N", "How many matches, right and wrong, the report explains", min=0)
    ] = 4,
    jobs: common.Jobs = None,
    cluster: common.Cluster = None,
    json: common.Json = False,
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
    common.report_failures([(f.path, f.reason) for f in found.failures])


def _evaluate(settings: EvaluateConfig, store: Path, jobs: int, cluster: str | None) -> Evaluation:
    from resight import datasets
    from resight.errors import InputError
    from resight.experiments.evaluate import evaluate, evaluate_vectors
    from resight.features.store import FeatureStore

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
    with common.executor(None if cluster else jobs, cluster) as workers:
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
