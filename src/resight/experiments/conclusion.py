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

    Re-ranked runs are left out: re-ranking belongs to searches, not to models. The interval and
    p-value (None for a single split) are those of the corrected resampled t test.
    """
    runs, protocol = document["runs"], document["protocol"]
    rank1 = {i: run["summary"]["rank1"]["mean"] for i, run in enumerate(runs) if not run["rerank"]}
    best, *others = sorted(rank1, key=lambda i: -rank1[i])
    found = {"run": best, "title": runs[best]["title"], "rank1": rank1[best]}
    most = f"{found['title']} finds most at rank 1 ({rank1[best]:.1f}%)"
    if not others:
        return {**found, "sentence": f"{found['title']} finds {rank1[best]:.1f}% at rank 1."}
    other, margin = runs[others[0]], rank1[best] - rank1[others[0]]
    found |= {"over": other["title"], "margin": margin}
    a, b = ([trial["cmc"]["1"] for trial in run["trials"]] for run in (runs[best], other))
    ahead = f"{most}, {margin:.1f} points more than {other['title']}"
    if len(a) < 2:
        told = f"{ahead}; one split cannot tell whether that is chance."
        return {**found, "ci95": None, "p_value": None, "more_than_chance": None, "sentence": told}
    asked, learned = protocol["query_people"], protocol["train_people"]
    compared = compare_paired(a, b, asked / (asked + learned))
    sure, (low, high) = compared.p_value < SURE, compared.ci95
    found |= {"ci95": [low, high], "p_value": compared.p_value, "more_than_chance": sure}
    measured = f"(95% interval {low:+.1f} to {high:+.1f} over {len(a)} splits)"
    return {
        **found,
        "sentence": f"{ahead}: {'more than chance' if sure else 'that may be chance'} {measured}.",
    }


def fit_facts(plan: Plan, features: Features, mirror: bool) -> dict[str, Any]:
    """Return everything that `resight fit` needs to fit what a run measured."""
    own = features.file is not None
    return {
        "learner": plan.word,
        "params": plan.params,
        # A network is found again by its file, and called by its name elsewhere.
        "descriptor": None
        if own
        else "+".join(getattr(one, "file", one.name) for one in features.made_by),
        "mirror": mirror,
        "features": features.file,
        "digest": features.fingerprint if own else None,
    }


def fit_command(run: dict[str, Any], *places: str) -> str:
    """Return the `resight fit` that makes a run's model; `places` are data and root as given."""
    fit = run["fit"]
    words = ["resight", "fit", *places]
    for name in ("features", "descriptor", "learner"):
        words += [f"--{name}", fit[name]] if fit[name] else []
    for name, value in fit["params"].items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--param", f"{name}={text}"]
    return shlex.join([*words, *(["--mirror"] if fit["mirror"] else []), "--out", "model"])


def fit_of(folder: str | Path, learner: str | None, descriptor: str | None) -> dict[str, Any]:
    """Return the `fit_facts` of the best run of a saved result, or of the best of those named."""
    document: dict[str, Any] = read_result(folder)
    runs = [run for run in document["runs"] if not run["rerank"]]
    if not all("fit" in run for run in runs):
        raise InputError(
            f"{folder} was written by resight {document['environment']['resight']}, which did not "
            "note how to fit what it measured; evaluate again, or name --descriptor and --learner "
            "instead of --from"
        )
    wanted = {"learner": learner, "descriptor": descriptor}
    named = [run for run in runs if all(v in (None, run["fit"][k]) for k, v in wanted.items())]
    if not named:
        known = (fit_command(run).partition("fit ")[2].partition(" --out")[0] for run in runs)
        raise InputError(f"{folder} has no such run; it has {'; '.join(known)}")
    return dict(max(named, key=lambda run: float(run["summary"]["rank1"]["mean"]))["fit"])
