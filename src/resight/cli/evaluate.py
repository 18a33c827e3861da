"""``resight evaluate``: evaluate learners on a dataset or on your own folders."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli import _common as common
from resight.cli._common import flag, option, print_json, say, verb

if TYPE_CHECKING:
    from resight.datasets.sightings import Sightings
    from resight.experiments.results import Result
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
        str | None, option("METHOD[,METHOD]", "Add re-ranking: k-reciprocal, cross-view", "none")
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
    from resight.experiments.evaluate import DiagnosticsError
    from resight.experiments.evaluate import evaluate as measure
    from resight.experiments.plans import plans_of
    from resight.workers import executors

    rerankers = () if rerank is None else rerank
    plans, sizes = plans_of(learner, _params(param or []), rerankers), _sizes(people)
    sightings, vectors = _inputs(data, root, features, mirror or cluster is not None)
    refusal = None
    try:
        with nullcontext() if cluster is None else executors.cluster(cluster) as workers:
            result = measure(
                sightings,
                descriptor=descriptor,
                features=vectors,
                learner=plans,
                protocol=protocol,
                splits=splits,
                mirror=mirror,
                calibrate=calibrate,
                curve=sizes or curve,
                store=store,
                out=out,
                explain=explain,
                jobs=jobs,
                executor=workers,
            )
    except DiagnosticsError as error:  # results so far are printed and saved first
        result, refusal = error.result, error
    _print(result, sightings.name, json)
    if out is not None:
        from resight.report import write

        command = shlex.join(["resight", *sys.argv[1:]])
        write(out / "report.html", result.document, sightings, out / "rankings.csv", command)
        say(f"wrote {out / 'result.json'}, {out / 'rankings.csv'}, {out / 'report.html'}")
    if refusal is not None:
        raise refusal
    common.report_failures(result.failures)


def _inputs(
    data: str | None, root: Path | None, file: Path | None, describing: bool
) -> tuple[Sightings, Features | None]:
    """Read own vectors, or the sightings to describe; `describing` options fit the latter."""
    from resight import datasets
    from resight.errors import InputError
    from resight.features.vectors import load_vectors

    if file is None and data is not None:
        return datasets.load(data, root=root), None
    if file is None:
        raise InputError(
            "give a dataset name, a folder or a CSV table to evaluate, or --features FILE"
        )
    if describing:
        raise InputError(
            "--cluster and --mirror apply to computing descriptors; leave them out with --features"
        )
    vectors, sightings = load_vectors(file, labels=data)
    return sightings, vectors


def _sizes(words: str | None) -> list[int] | None:
    if words is None:
        return None
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--people {words}: give numbers, such as 25,50,100") from None


def _params(words: list[str]) -> dict[str, dict[str, Any]]:
    from resight.registry import parse_params

    params: dict[str, dict[str, Any]] = {}
    for name, value in parse_params(words).items():
        learner, dot, key = name.partition(".")
        if not dot:
            raise typer.BadParameter(
                f"--param {name}: expected learner.name=value, such as kxqda.reg=1e-3"
            )
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
        f"{protocol['train_people']} training people, {protocol['query']} queries, "
        f"gallery of {protocol['gallery']}"
    )
    print(result)
    for more in (*notes(document), diagnostics_text(document)):
        if more:
            print(f"\n{more}")
