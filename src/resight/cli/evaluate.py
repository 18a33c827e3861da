"""``resight evaluate``: evaluate learners on a dataset or on your own folders."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from resight.cli import _common as common
from resight.cli._common import answer, flag, option, say
from resight.plans import DESCRIPTOR, LEARNER, MIRROR, learner_for, params_by_learner, plans_of

STORE = Path("features")
_RERANK = "Add re-ranking: k-reciprocal, cross-view, ssm, ol-mans"

if TYPE_CHECKING:
    from resight.experiments.results import Result


def evaluate(
    ctx: typer.Context,
    data: common.DataOrNone = None,
    root: common.Root = None,
    descriptor: str = option(
        DESCRIPTOR, "NAME[+NAME...]", "Descriptors, concatenated with '+'; ',' separates runs"
    ),
    learner: common.Learners = None,
    param: common.Params = None,
    protocol: str | None = option(None, "NAME", "Protocol", "the dataset's first"),
    splits: Path | None = option(None, "FILE", "Your own splits (JSON)", "those of the protocol"),
    features: common.OwnVectors = None,
    mirror: common.Mirror = MIRROR,
    rerank: str | None = option(None, "METHOD[,METHOD]", _RERANK, "none"),
    calibrate: bool = flag("--calibrate", "Also measure how well calibrated probabilities are"),
    curve: bool = flag("--curve", "Also measure with fewer labelled people"),
    people: str | None = option(None, "N[,N...]", "How many, with --curve", "all, 1/2, 1/4, ..."),
    store: common.Store = STORE,
    out: Path | None = option(None, "DIR", "Folder for result, rankings, report", "print only"),
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
    from resight.models.training import training_rows
    from resight.workers import executors

    sizes, rerankers = _sizes(people), () if rerank is None else rerank
    # Wrong names are refused before anything is read.
    given = params_by_learner(param or [], learner or LEARNER)
    if learner is not None:
        plans_of(learner, given, rerankers)
    describing = bool(common.given(ctx, "descriptor", "mirror", "cluster"))
    sightings, vectors = common.inputs(data, root, features, describing)
    learner = learner or learner_for(len(training_rows(sightings)))
    refusal = None
    try:
        with nullcontext() if cluster is None else executors.cluster(cluster) as workers:
            result = measure(
                sightings,
                descriptor=descriptor,
                features=vectors,
                learner=learner,
                params=params_by_learner(param or [], learner),
                rerank=rerankers,
                protocol=protocol,
                splits=splits,
                mirror=mirror,
                calibrate=calibrate,
                curve=sizes or curve,
                store=store,
                out=out,
                jobs=jobs,
                executor=workers,
            )
    except DiagnosticsError as error:  # results so far are printed and saved first
        result, refusal = error.result, error
    places = [*filter(None, [data]), *(["--root", str(root)] if root else [])]
    places += [] if store == STORE else ["--store", str(store)]
    _print(result, sightings.name, places, json)
    if out is not None:
        from resight.report import write

        command = shlex.join(["resight", *sys.argv[1:]])
        write(out / "report.html", result.document, sightings, out / "rankings.csv", command)
        say(f"wrote {out / 'result.json'}, {out / 'rankings.csv'}, {out / 'report.html'}")
    if refusal is not None:
        raise refusal
    common.report_failures(result.failures)


def _sizes(words: str | None) -> list[int] | None:
    if words is None:
        return None
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--people {words}: give numbers, such as 25,50,100") from None


def _print(result: Result, name: str, places: list[str], as_json: bool) -> None:
    """Print a result and, as text, which row won and how to fit it on data at these places."""
    document: dict[str, Any] = result.document
    for run in document["runs"]:
        for text in run["warnings"]:
            say(f"{run['title']}: {text}")
    if as_json:
        answer(as_json, document, "")
        return
    from resight.experiments.results import fit_command
    from resight.experiments.tables import diagnostics_text, notes

    protocol = document["protocol"]
    print(
        f"{name}: {protocol['name']}, {protocol['splits']} splits, "
        f"{protocol['train_people']} training people, {protocol['query']} queries, "
        f"gallery of {protocol['gallery']}"
    )
    print(result)
    winner = result.winner
    command = fit_command(document["runs"][winner["run"]], *places)
    way_on = f"{winner['sentence']} To fit it on everybody:\n  {command}"
    for more in (*notes(document), diagnostics_text(document), way_on):
        if more:
            print(f"\n{more}")
