"""Run learners over the splits of a protocol, from Gram matrices computed once."""

from __future__ import annotations

import re
import time
import typing
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._progress import progress
from resight.datasets.sightings import Sightings
from resight.errors import InputError, unknown_name
from resight.evaluation.camera_pairs import CameraPairs, camera_pairs
from resight.evaluation.reranking import cross_view_reciprocal, k_reciprocal_from_distances
from resight.evaluation.result import RankingResult
from resight.learners.euclidean import Euclidean
from resight.protocols import Protocol, Split, person_scores, scored_persons
from resight.protocols.scoring import PersonScores
from resight.registry import AUTO, LearnerSpec, learner_spec
from resight.tuning.candidates import Candidate
from resight.tuning.cross_validation import choose
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import Between, GramSpace, Products, between_test_rows, lookup
from resight.tuning.race import Search, variants_of

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
RANKS = (1, 5, 10, 20)
RERANKERS = ("k-reciprocal", "cross-view")


@dataclass(frozen=True)
class Plan:
    """One row of a result: a learner with its parameters, or with candidates to choose from."""

    learner: str
    version: str = "default"
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    candidates: tuple[Candidate, ...] = ()
    n_folds: int = 3
    rerank: str | None = None  # post-processing that uses the gallery; see RERANKERS

    @property
    def spec(self) -> LearnerSpec:
        """The registered learner."""
        return learner_spec(self.learner)

    @property
    def normalize(self) -> bool:
        """Whether descriptors are block-normalised first."""
        return self.spec.normalizes(self.params)


class Ranked(NamedTuple):
    """The rankings of one direction, and the sightings (rows of the dataset) that were ranked."""

    result: RankingResult
    query_rows: Rows
    gallery_rows: Rows
    cameras: CameraPairs | None = None  # where three or more cameras are ranked


@dataclass(frozen=True)
class Trial:
    """What one learner reached on one split."""

    rankings: tuple[Ranked, ...]  # one for each direction
    params: dict[str, Any]
    fit_s: float
    choice: list[dict[str, Any]] | None = None  # how each candidate scored
    warnings: tuple[str, ...] = ()  # what the learner had to say about its fit

    def rank(self, k: int) -> float:
        """Fraction found within the first k, mean of directions."""
        return float(np.mean([result.rank(k) for result, *_ in self.rankings]))

    @property
    def map(self) -> float:
        """Mean average precision, mean of directions."""
        return float(np.mean([result.mean_average_precision for result, *_ in self.rankings]))

    @property
    def minp(self) -> float:
        """Mean inverse negative penalty, mean of directions."""
        values = [result.mean_inverse_negative_penalty for result, *_ in self.rankings]
        return float(np.mean(values))


def run(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plans: Sequence[Plan],
    *,
    n_jobs: int = 1,
    title: str = "splits",
) -> list[list[Trial]]:
    """Measure each plan on each split; returns a list of trials for each plan.

    Splits are spread over processes, each with one BLAS thread: at these sizes two fits side by
    side are faster than one fit on two threads.
    """
    from joblib import Parallel, delayed

    tasks = [
        delayed(run_split)(sightings, protocol, space, split, plans) for split in protocol.splits
    ]
    trials: list[list[Trial]] = []
    with progress(title, len(tasks)) as advance:
        workers = min(n_jobs, len(tasks))
        for of_split in Parallel(n_jobs=workers, return_as="generator")(tasks):
            trials.append(of_split)
            advance(1)
    return [list(of_plan) for of_plan in zip(*trials, strict=True)]


class Warned(typing.Protocol):
    """Anything that tells what learners warned of."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Each warning once."""


def warnings_of(trials: Sequence[Warned]) -> list[str]:
    """List what learners warned of, each once, with the number of splits it happened in.

    Warnings that differ only in their figures count as one; the first is shown.
    """
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for trial in trials:
        for text in trial.warnings:
            kind = re.sub(r"[-+.\d]+(e[-+]?\d+)?", "#", text)
            counts[kind] = counts.get(kind, 0) + 1
            shown.setdefault(kind, text)
    return [f"in {counts[kind]} of {len(trials)} splits: {text}" for kind, text in shown.items()]


def run_split(
    sightings: Sightings, protocol: Protocol, space: GramSpace, split: Split, plans: Sequence[Plan]
) -> list[Trial]:
    """Measure all plans on one split."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        products: dict[tuple[bool, bool], Products] = {}
        return [_trial(sightings, protocol, space, split, plan, products) for plan in plans]


def _trial(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    split: Split,
    plan: Plan,
    known: dict[tuple[bool, bool], Products],
) -> Trial:
    start = time.perf_counter()
    persons, cameras = sightings.persons[split.train], sightings.cameras[split.train]
    if plan.learner == AUTO:
        return _auto_trial(sightings, protocol, space, split, plan)
    params, table = dict(plan.params), None
    if plan.candidates:
        choice = choose(space, split.train, persons, cameras, plan.candidates, plan.n_folds)
        params |= choice.best.params()
        table = choice.table()
    learner = plan.spec.make(**params)
    key = (plan.normalize, isinstance(learner, Euclidean))
    if key not in known:
        known[key] = space.products(split.train, split.test, normalize=key[0], between_test=key[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        between = between_test_rows(learner, known[key], persons, cameras)
    seconds = time.perf_counter() - start
    rankings = rank_directions(sightings, protocol, split, between, plan.rerank)
    said = dict.fromkeys(str(warning.message) for warning in caught)
    return Trial(rankings, params, seconds, table, tuple(said))


def _auto_trial(
    sightings: Sightings, protocol: Protocol, space: GramSpace, split: Split, plan: Plan
) -> Trial:
    """Choose everything on the training people of this split, in its own Gram space."""
    start = time.perf_counter()
    persons, cameras = sightings.persons[split.train], sightings.cameras[split.train]
    unknown = np.setdiff1d(sightings.cameras[split.test], cameras)
    if len(unknown):
        raise InputError(
            f"camera {unknown[0]} is tested but has no labelled people to learn from; label some "
            "there, or leave the camera out"
        )
    search = Search(space, split.train, persons, cameras, **plan.params)
    setting = search.run()
    known = np.unique(cameras)
    variants = variants_of(space, plan.params.get("mirrored", False))
    fold = Fold(
        variants[setting.variant],
        split.train,
        split.test,
        search.persons,
        np.searchsorted(known, cameras),
        np.searchsorted(known, sightings.cameras[split.test]),
    )
    between = lookup(fold.distances(setting))
    seconds = time.perf_counter() - start
    rankings = rank_directions(sightings, protocol, split, between, plan.rerank)
    table = [tried.as_dict() for tried in search.tried]
    stopped = () if search.stopped is None else (search.stopped,)
    return Trial(rankings, setting.as_dict(), seconds, table, stopped)


def rank_directions(
    sightings: Sightings,
    protocol: Protocol,
    split: Split,
    between: Between,
    rerank: str | None = None,
) -> tuple[Ranked, ...]:
    """Score people and rank the gallery, in each direction of a split.

    ``between(a, b)`` gives the distances between test rows, by their places in ``split.test``.
    """
    place = np.full(len(sightings), -1)
    place[split.test] = np.arange(len(split.test))
    rankings = []
    for query, gallery in split.directions:
        part = _reranked(between, place[query], place[gallery], rerank)
        rankings.append(ranked(sightings, protocol, query, gallery, part))
    return tuple(rankings)


def ranked(
    sightings: Sightings,
    protocol: Protocol,
    query: NDArray[np.intp],
    gallery: NDArray[np.intp],
    distances: Floats,
) -> Ranked:
    """Score people and rank the gallery of one direction, from distances (n_query, n_gallery)."""
    asked, held = scored_persons(sightings, query), scored_persons(sightings, gallery)
    scores = person_scores(distances, asked, held, protocol.scoring)
    query, gallery = query[scores.query_rows], gallery[scores.gallery_rows]
    own_camera = protocol.cross_camera_only
    result = RankingResult.from_distances(
        scores.distances,
        scores.query_persons,
        scores.gallery_persons,
        query_cameras=sightings.cameras[query] if own_camera else None,
        gallery_cameras=sightings.cameras[gallery] if own_camera else None,
        junk=sightings.roles[gallery] == "junk",
    )
    return Ranked(
        result, query, gallery, _camera_pairs(sightings, protocol, query, gallery, scores)
    )


def _camera_pairs(
    sightings: Sightings, protocol: Protocol, query: Rows, gallery: Rows, scores: PersonScores
) -> CameraPairs | None:
    """Count by pairs of cameras, if there are more than two and sightings stand for themselves."""
    cameras = np.unique(sightings.cameras).tolist()
    if len(cameras) < 3 or protocol.scoring != "single":
        return None
    return camera_pairs(
        scores.distances,
        scores.query_persons,
        scores.gallery_persons,
        sightings.cameras[query],
        sightings.cameras[gallery],
        junk=sightings.roles[gallery] == "junk",
        cameras=cameras,
    )


def _reranked(between: Between, query: Rows, gallery: Rows, rerank: str | None) -> Floats:
    """Distances of queries to gallery, replaced by re-ranked ones where asked for."""
    part = between(query, gallery)
    if rerank is None:
        return part
    if rerank == "cross-view":
        return cross_view_reciprocal(part)
    if rerank == "k-reciprocal":
        parts = part, between(query, query), between(gallery, gallery)
        return k_reciprocal_from_distances(*(np.maximum(one, 0.0) for one in parts))
    raise unknown_name("re-ranking", rerank, RERANKERS)
