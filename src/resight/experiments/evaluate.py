"""The main job: sightings and a protocol in, a result out.

Plans are measured on feature sets, in Gram space or out of core.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments import in_gram_space, out_of_core, results
from resight.experiments.confidence import confidence
from resight.experiments.learning_curve import learning_curve
from resight.experiments.results import Result, Run, Trials
from resight.experiments.runner import FinishedSplits
from resight.features.rows import GRAM_LIMIT, FeatureRows
from resight.features.store import Features, FeatureStore
from resight.features.vectors import own_vectors
from resight.models.training import check_vectors, training_rows
from resight.plans import DESCRIPTOR, MIRROR, Plan, learner_for, listed, plans_of
from resight.protocols import Protocol, for_dataset, from_file
from resight.registry import AUTO
from resight.tuning.gram import gram_space
from resight.workers.executors import Executor, local

_KEPT = "trials/2"  # how finished splits are written: those of another form are measured again
# Columns of sightings that rankings depend on.
_LABELS = ("persons", "cameras", "roles", "sequences", "sites")


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
        default learner is that of `resight.plans`, which chooses its setting in each split.
    protocol, splits : optional
        A protocol's name, or a JSON file of own splits; by default the dataset's usual protocol.
    mirror : bool
        Average descriptors over mirror images. The learner `auto` chooses, unless this is set.
    calibrate, curve : bool
        Also measure calibration, or with fewer labelled people: `curve` may list their numbers.
    store : FeatureStore or path
        Where descriptors are kept, and finished splits until the result is there: a call that was
        interrupted goes on with the others.
    out : path, optional
        Folder for the result's files.
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
    for plan in plans if calibrate or curve else ():
        plan.require_fixed()
    kept_in = store if isinstance(store, FeatureStore) else FeatureStore(store)
    with local(jobs) if executor is None else nullcontext(executor) as workers:
        inputs = [FeatureSet(vectors, None, np.ones(len(sightings), bool))] if vectors else []
        if vectors is None:
            choosing = not mirror and any(plan.learner == AUTO for plan in plans)
            describe = partial(kept_in.ensure, sightings, executor=workers, on_error="collect")
            inputs = _described(describe, listed(descriptor), mirror, choosing)
        usable = sightings.select(np.flatnonzero(inputs[0].usable))
        for one in inputs:
            check_vectors(one.features, np.flatnonzero(one.usable), usable)
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
        result = _result(evaluation, mirror)
        refusal = None
        try:
            evaluation.diagnose(result.document, calibrate, curve)
        except InputError as error:  # what was measured is kept all the same
            refusal = DiagnosticsError(str(error), result)
    if out is not None:
        result.save(out)
    evaluation.finished.remove()
    if refusal is not None:
        raise refusal
    return result


def _described(
    describe: Callable[..., Features], descriptors: list[str], mirror: bool, choosing: bool
) -> list[FeatureSet]:
    """Return features, those of mirror images too where `auto` is `choosing` between both."""
    found = [describe(names, mirror) for names in descriptors]
    usable = np.logical_and.reduce([features.usable for features in found])
    if not usable.any():
        first = found[0].failures[0]
        raise InputError(f"no image could be described; the first: {first.path}: {first.reason}")
    mirrored = [describe(names, True) if choosing else None for names in descriptors]
    return [FeatureSet(*pair, usable) for pair in zip(found, mirrored, strict=True)]


def _result(evaluation: Evaluation, mirror: bool) -> Result:
    runs, sightings = evaluation.runs(), evaluation.sightings
    used = [one.features for one in evaluation.feature_sets]
    facts = {
        "sightings": len(sightings),
        "fingerprint": {"+".join(one.descriptors): one.fingerprint for one in used},
        "mirror": mirror,
    }
    failures = {failure.row: failure for one in used for failure in one.failures}
    told = results.document(sightings, evaluation.protocol, runs, facts)
    for run, (features, plan) in zip(told["runs"], product(used, evaluation.plans), strict=True):
        run["fit"] = results.fit_facts(plan, features, mirror)
    told["winner"] = results.winner_of(told)
    return Result(told, results.ranking_rows(runs), tuple(failures.values()))


class FeatureSet(NamedTuple):
    """Features that all plans are measured on."""

    features: Features
    mirrored: Features | None  # averaged over mirror images, where `auto` may choose
    usable: NDArray[np.bool_]  # the rows of the evaluated sightings

    @property
    def source(self) -> FeatureRows:
        """The features of the evaluated sightings."""
        return FeatureRows(self.features.parts, self.features.blocks, np.flatnonzero(self.usable))


@dataclass(frozen=True)
class Evaluation:
    """What is measured on which features, and by how many processes."""

    sightings: Sightings
    protocol: Protocol
    plans: Sequence[Plan]
    feature_sets: Sequence[FeatureSet]
    finished: FinishedSplits
    n_jobs: int = 1
    executor: Executor | None = None

    def runs(self) -> list[Run]:
        """Measure every plan on every feature set."""
        return [
            Run(plan, given.features.descriptors, trials)
            for given in self.feature_sets
            for plan, trials in zip(self.plans, self._trials(given), strict=True)
        ]

    def diagnose(
        self, document: dict[str, Any], calibrate: bool, curve: bool | Sequence[int]
    ) -> None:
        """Put ``confidence`` and ``learning_curve`` into the runs of a result document.

        Re-ranked runs have neither: their order is not that of distances.
        """
        runs = iter(document["runs"])
        sizes = None if isinstance(curve, bool) else curve
        for given in self.feature_sets if calibrate or curve else ():
            if given.source.gram_bytes > GRAM_LIMIT:
                raise InputError(
                    "--calibrate and --curve fit many models in Gram space, for which "
                    f"{given.source.size} are too many; evaluate a part of the people"
                )
            space = gram_space(given.features, given.usable)
            for plan in self.plans:
                run, where = next(runs), (self.sightings, self.protocol, space, plan)
                keep, jobs = partial(self._folder, given, [plan]), self.n_jobs
                if calibrate and plan.rerank is None:
                    run["confidence"] = confidence(*where, folder=keep("confidence"), n_jobs=jobs)
                if curve and plan.rerank is None:
                    kept = keep("learning curve", repr(sizes))
                    run["learning_curve"] = learning_curve(*where, sizes, folder=kept, n_jobs=jobs)

    def _folder(self, given: FeatureSet, plans: Sequence[Plan], *identity: str) -> Path:
        """Return where splits are kept that were measured with some plans on a feature set."""
        used = [one.fingerprint for one in (given.features, given.mirrored) if one is not None]
        labels = [getattr(self.sightings, name).tolist() for name in _LABELS]
        facts = [labels, [asdict(plan) for plan in plans], results.environment()]
        text = json.dumps(facts, sort_keys=True, default=repr)
        return self.finished.folder(_KEPT, self.protocol.fingerprint, text, *used, *identity)

    def _trials(self, given: FeatureSet) -> list[Trials]:
        """Measure all plans on a feature set, in their order."""
        large = [plan for plan in self.plans if out_of_core.exceeds_gram_space(plan, given.source)]
        small = [plan for plan in self.plans if plan not in large]
        for plan in large:
            out_of_core.check(plan, given.source)
        found: dict[int, Trials] = {id(plan): self._out_of_core(given, plan) for plan in large}
        if small:
            found |= zip(map(id, small), self._in_gram_space(given, small), strict=True)
        return [found[id(plan)] for plan in self.plans]

    def _in_gram_space(self, given: FeatureSet, plans: Sequence[Plan]) -> Sequence[Trials]:
        trainable = None  # rows whose inner products with all others are needed: all of them
        if all(plan.learner != "euclidean" for plan in plans):  # which compares test rows directly
            trainable = np.unique(np.concatenate([split.train for split in self.protocol.splits]))
        space = partial(gram_space, usable=given.usable, trainable=trainable)
        return in_gram_space.measure(
            self.sightings,
            self.protocol,
            space(given.features),
            plans,
            mirrored=None if given.mirrored is None else space(given.mirrored),
            folder=self._folder(given, plans),
            n_jobs=self.n_jobs,
            title=f"splits, {'+'.join(given.features.descriptors)}",
        )

    def _out_of_core(self, given: FeatureSet, plan: Plan) -> Trials:
        return out_of_core.measure(
            self.sightings,
            self.protocol,
            given.source,
            plan,
            fingerprint=given.features.fingerprint,
            executor=self.executor,
            scratch=None if self.executor is None else self.finished.store,
            folder=self._folder(given, [plan]),
            threads=self.n_jobs,
            title=f"splits, {plan.learner}",
        )
