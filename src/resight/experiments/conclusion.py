"""The way on after an evaluation: which row won, whether by more than chance, and how to fit it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from resight.errors import InputError
from resight.evaluation.statistics import compare_paired
from resight.features.store import Features
from resight.plans import Plan
from resight.report.result_files import read_result

SURE = 0.05  # p below which a margin is called more than chance


def winner_of(document: dict[str, Any]) -> dict[str, Any]:
    """Compare the run of the best mean rank 1 with the next best, over the same splits.

    Re-ranked runs are left out: `fit` makes models, and re-ranking belongs to searches. Among
    equals the first wins.

    Returns
    -------
    dict
        ``run``, ``title``, ``rank1``; and, if there is another run, ``over``, ``margin`` in points
        of rank 1, ``ci95`` and ``p_value`` of the corrected resampled t test (None for a single
        split) and ``more_than_chance``; and all of it as a ``sentence``.
    """
    numbers = [i for i, run in enumerate(document["runs"]) if run["rerank"] is None]
    rank1 = {i: document["runs"][i]["summary"]["rank1"]["mean"] for i in numbers}
    best, *others = sorted(numbers, key=lambda i: -rank1[i])
    title = document["runs"][best]["title"]
    found = {"run": best, "title": title, "rank1": rank1[best]}
    if not others:
        return {**found, "sentence": f"{title}: {rank1[best]:.1f}% at rank 1."}
    a, b = (
        [trial["cmc"]["1"] for trial in document["runs"][i]["trials"]] for i in (best, others[0])
    )
    compared = None
    if len(a) > 1:
        compared = compare_paired(a, b, _test_fraction(document["protocol"]))
    found |= {
        "over": document["runs"][others[0]]["title"],
        "margin": rank1[best] - rank1[others[0]],
        "ci95": None if compared is None else list(compared.ci95),
        "p_value": None if compared is None else compared.p_value,
        "more_than_chance": None if compared is None else compared.p_value < SURE,
    }
    return {**found, "sentence": _sentence(found, len(a))}


def _test_fraction(protocol: dict[str, Any]) -> float:
    asked, learned = protocol["query_people"], protocol["train_people"]
    return float(asked / (asked + learned))


def _sentence(found: dict[str, Any], n_splits: int) -> str:
    best, other, margin = found["title"], found["over"], found["margin"]
    if margin == 0.0:
        return f"{best} and {other} find as many at rank 1 ({found['rank1']:.1f}%)."
    most = f"{best} finds most at rank 1 ({found['rank1']:.1f}%)"
    ahead = f"{most}, {margin:.1f} points more than {other}"
    if found["ci95"] is None:
        return f"{ahead}; one split cannot tell whether that is chance."
    low, high = found["ci95"]
    measured = f"95% interval {low:+.1f} to {high:+.1f} over {n_splits} splits"
    if found["more_than_chance"]:
        return f"{ahead}: more than chance ({measured})."
    return f"{ahead}: that may be chance ({measured})."


def fit_facts(plan: Plan, features: Features, mirror: bool) -> dict[str, Any]:
    """Return everything that `resight fit` needs to fit what a run measured."""
    own = features.file is not None
    return {
        "learner": plan.word,
        "params": plan.params,
        "descriptor": None if own else "+".join(features.descriptors),
        "mirror": mirror,
        "features": features.file,
        "digest": features.fingerprint if own else None,
    }


def fit_command(run: dict[str, Any], *places: str) -> str:
    """Return the `resight fit` that makes a run's model; `places` are data and root as given."""
    fit = run["fit"]
    words = ["resight", "fit", *places]
    words += ["--features", fit["features"]] if fit["features"] else []
    words += ["--descriptor", fit["descriptor"]] if fit["descriptor"] else []
    words += ["--learner", fit["learner"]]
    for name, value in fit["params"].items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--param", f"{name}={text}"]
    return shlex.join([*words, *(["--mirror"] if fit["mirror"] else []), "--out", "model"])


def fit_of(
    folder: str | Path, learner: str | None = None, descriptor: str | None = None
) -> dict[str, Any]:
    """Return what `fit` needs for the best run of a saved result, or the best of those named.

    Parameters
    ----------
    learner, descriptor : str, optional
        As ``--learner`` and ``--descriptor`` of `evaluate` named the run.

    Returns
    -------
    dict
        As `fit_facts` made it.
    """
    document: dict[str, Any] = read_result(folder)
    runs = [run for run in document["runs"] if run["rerank"] is None]
    if not all("fit" in run for run in runs):
        version = document.get("environment", {}).get("resight", "an older version")
        raise InputError(
            f"{folder} was written by resight {version}, which did not note how to fit what it "
            "measured; evaluate again, or name --descriptor and --learner instead of --from"
        )
    named = [
        run
        for run in runs
        if learner in (None, run["fit"]["learner"])
        and descriptor in (None, run["fit"]["descriptor"])
    ]
    if not named:
        known = "; ".join(
            f"--learner {run['fit']['learner']} --descriptor {'+'.join(run['descriptors'])}"
            for run in runs
        )
        raise InputError(f"{folder} has no such run; it has {known}")
    best = max(named, key=lambda run: run["summary"]["rank1"]["mean"])
    return dict(best["fit"])
