"""The main job: sightings and a protocol in, a result out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.explaining import explain_matches, save_explanations
from resight.experiments.measuring import Evaluation, FeatureSet
from resight.experiments.results import Result, Run, document, fit_facts, ranking_rows, winner_of
from resight.experiments.runner import FinishedSplits
from resight.features.store import Features, FeatureStore
from resight.features.vectors import own_vectors
from resight.models.training import check_vectors, training_rows
from resight.plans import Plan, listed, plans_of
from resight.protocols import for_dataset, from_file
from resight.recipe import DESCRIPTOR, MIRROR, learner_for
from resight.registry import AUTO
from resight.validation import check_count
from resight.workers.executors import Executor, local


class DiagnosticsError(InputError):
    """Calibration or a learning curve cannot be measured; `result` holds everything else."""

    def __init__(self, reason: str, result: Result) -> None:
        super().__init__(reason)
        self.result = result


def evaluate(
    sightings: Sightings | None = None,
    *,
    descriptor: str | Sequence[str] = DESCRIPTOR,
    features: Features | str | Path | None = None,
    learner: str | Sequence[str | Plan] | None = None,
    params: Mapping[str, Mapping[str, object]] | None = None,
    rerank: str | Sequence[str] = (),
    protocol: str | None = None,
    splits: str | Path | None = None,
    mirror: bool = MIRROR,
    calibrate: bool = False,
    curve: bool | Sequence[int] = False,
    store: FeatureStore | str | Path = "features",
    out: str | Path | None = None,
    explain: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> Result:
    """Fit learners on the training people of each split and rank the others.

    Parameters
    ----------
    sightings : Sightings, optional
        Not needed where the file `features` holds people and cameras.
    descriptor : str or sequence of str
        ``+`` puts descriptors side by side; ``,`` or a sequence gives several runs.
    features : Features or path, optional
        Own vectors instead of descriptors, one row for each sighting.
    learner, params, rerank
        As `plans_of` takes them: ``learner="kxqda,xqda", params={"kxqda": {"reg": 1e-3}}``. The
        default learner is that of `resight.recipe`, which chooses its setting in each split.
    protocol, splits : optional
        A protocol's name, or a JSON file of own splits; by default the dataset's usual protocol.
    mirror : bool
        Average descriptors over mirror images. The learner `auto` chooses, unless this is set.
    calibrate, curve : bool
        Also measure calibration, or with fewer labelled people: `curve` may list their numbers.
    store : FeatureStore or path
        Where descriptors are kept, and finished splits until the result is there: a call that was
        interrupted goes on with the others.
    out, explain : optional
        Folder for the result's files, with so many matches explained.
    jobs : int, optional
        Processes; by default one per core.
    executor : Executor, optional
        Such as `resight.cluster`, for extraction and landmarks.

    Examples
    --------
    >>> evaluate(sightings, learner="kxqda,xqda").to_frame()  # doctest: +SKIP
    """
    vectors, sightings = own_vectors(features, sightings, to="evaluate")
    word = learner_for(len(training_rows(sightings))) if learner is None else learner
    plans = plans_of(word, params or {}, rerank)
    check_count(explain, "explain", 0)
    for plan in plans if calibrate or curve else ():
        plan.require_fixed()
    kept_in = store if isinstance(store, FeatureStore) else FeatureStore(store)
    with local(jobs) if executor is None else nullcontext(executor) as workers:
        if vectors is not None:
            usable, inputs = sightings, [FeatureSet(vectors, None, np.ones(len(sightings), bool))]
        else:
            choosing = not mirror and any(plan.learner == AUTO for plan in plans)
            describe = partial(kept_in.ensure, executor=workers, on_error="collect")
            usable, inputs = _described(sightings, listed(descriptor), describe, mirror, choosing)
        for given in inputs:
            check_vectors(given.features, np.flatnonzero(given.usable), usable)
        chosen = from_file(str(splits), usable) if splits else for_dataset(usable, protocol)
        people = chosen.summary(usable)["train_people"]
        evaluation = Evaluation(
            usable,
            chosen,
            [plan.within_budget(people) for plan in plans],
            inputs,
            FinishedSplits(kept_in.folder),
            n_jobs=local(jobs).slots,
            executor=workers if features is None else None,
        )
        runs = evaluation.runs()
        result = _result(evaluation, runs, mirror)
        refusal = None
        try:
            evaluation.diagnose(result.document, calibrate, curve)
        except InputError as error:  # what was measured is kept all the same
            refusal = DiagnosticsError(str(error), result)
    if out is not None:
        result.save(out)
        n_explained = explain if features is None else 0
        save_explanations(Path(out), explain_matches(evaluation, runs, n_explained, mirror))
    evaluation.finished.remove()
    if refusal is not None:
        raise refusal
    return result


def _described(
    sightings: Sightings,
    descriptors: list[str],
    describe: Callable[..., Features],
    mirror: bool,
    choosing: bool,
) -> tuple[Sightings, list[FeatureSet]]:
    """Return the sightings that have features, and their features.

    Features averaged over mirror images are added if `auto` is `choosing` between both.
    """
    found = [describe(sightings, names, mirror) for names in descriptors]
    usable = np.logical_and.reduce([features.usable for features in found])
    if not usable.any():
        first = found[0].failures[0]
        raise InputError(f"no image could be described; the first: {first.path}: {first.reason}")
    mirrored = [describe(sightings, names, True) if choosing else None for names in descriptors]
    sets = [FeatureSet(*pair, usable) for pair in zip(found, mirrored, strict=True)]
    return sightings.select(np.flatnonzero(usable)), sets


def _result(evaluation: Evaluation, runs: list[Run], mirror: bool) -> Result:
    sightings, used = evaluation.sightings, [one.features for one in evaluation.feature_sets]
    facts = {
        "sightings": len(sightings),
        "fingerprint": {"+".join(one.descriptors): one.fingerprint for one in used},
        "mirror": mirror,
    }
    failures = {failure.row: failure for one in used for failure in one.failures}
    told = document(sightings, evaluation.protocol, runs, facts)
    measured = [(plan, one) for one in used for plan in evaluation.plans]
    for run, (plan, features) in zip(told["runs"], measured, strict=True):
        run["fit"] = fit_facts(plan, features, mirror)
    told["winner"] = winner_of(told)
    return Result(told, ranking_rows(sightings, runs), tuple(failures.values()))
