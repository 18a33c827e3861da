"""Trials: what one learner reached on one split, and how distances become rankings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import Sightings
from resight.errors import unknown_name
from resight.evaluation.camera_pairs import CameraPairs, camera_pairs
from resight.evaluation.local_metrics import adapt_locally
from resight.evaluation.pairwise import MeasuredPoints
from resight.evaluation.ranking import RankingResult
from resight.evaluation.reranking import cross_view_reciprocal, k_reciprocal
from resight.evaluation.smoothed_manifold import smoothed_manifold
from resight.experiments.runner import over_splits
from resight.plans import RERANKERS
from resight.protocols import Protocol, Split, person_scores, scored_persons
from resight.tuning.gram import Between, Floats, Rows

RANKS = (1, 5, 10, 20)


class Ranked(NamedTuple):
    """The rankings of one direction, and the sightings (rows of the dataset) that were ranked."""

    result: RankingResult
    query_rows: Rows
    gallery_rows: Rows
    cameras: CameraPairs | None = None  # where three or more cameras are ranked

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain types."""
        ranking = {field.name: getattr(self.result, field.name) for field in fields(self.result)}
        distances = ranking["top_distances"].astype(object)
        distances[np.isnan(self.result.top_distances)] = None  # JSON has no NaN
        ranking["top_distances"] = distances
        return {
            "ranking": {name: values.tolist() for name, values in ranking.items()},
            "query_rows": self.query_rows.tolist(),
            "gallery_rows": self.gallery_rows.tolist(),
            "cameras": None if self.cameras is None else self.cameras.to_dict(),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Ranked:
        """Restore what `to_dict` gave."""
        query, gallery = (np.array(told[name], np.intp) for name in ("query_rows", "gallery_rows"))
        cameras = None if told["cameras"] is None else CameraPairs.from_dict(told["cameras"])
        distances = np.array(told["ranking"]["top_distances"], float)
        result = RankingResult(**{**told["ranking"], "top_distances": distances})
        return cls(result, query, gallery, cameras)


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
        return float(np.mean([one.result.rank(k) for one in self.rankings]))

    @property
    def map(self) -> float:
        """Mean average precision, mean of directions."""
        return float(np.mean([one.result.mean_average_precision for one in self.rankings]))

    @property
    def minp(self) -> float:
        """Mean inverse negative penalty, mean of directions."""
        return float(np.mean([one.result.mean_inverse_negative_penalty for one in self.rankings]))

    def figures(self) -> dict[str, Any]:
        """Return it in plain types, without the rankings themselves."""
        return {
            "ranks": {f"rank{k}": self.rank(k) for k in RANKS},
            "map": self.map,
            "params": self.params,
            "fit_s": self.fit_s,
            "choice": self.choice,
            "warnings": list(self.warnings),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain types."""
        return {**self.figures(), "rankings": [ranked.to_dict() for ranked in self.rankings]}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Trial:
        """Restore what `to_dict` gave."""
        rankings = tuple(map(Ranked.from_dict, told["rankings"]))
        return cls(rankings, told["params"], told["fit_s"], told["choice"], tuple(told["warnings"]))


def trials_over(
    measure: Callable[[Split], list[Trial]], splits: Sequence[Split], **how: Any
) -> list[list[Trial]]:
    """Measure some plans on each split, as `over_splits` does; return the trials of each plan."""

    def plain(split: Split) -> list[dict[str, Any]]:
        return [trial.to_dict() for trial in measure(split)]

    found = over_splits(plain, splits, **how)
    return [[Trial.from_dict(one) for one in of_plan] for of_plan in zip(*found, strict=True)]


def warnings_of(splits: Sequence[Sequence[str]]) -> list[str]:
    """List what learners warned of, each once, with the number of splits it happened in.

    Warnings that differ only in their figures count as one; the first is shown.
    """
    kinds: dict[str, list[str]] = {}
    for text in chain.from_iterable(splits):
        kinds.setdefault(re.sub(r"[-+.\d]+(e[-+]?\d+)?", "#", text), []).append(text)
    return [f"in {len(same)} of {len(splits)} splits: {same[0]}" for same in kinds.values()]


def rank_directions(
    sightings: Sightings,
    protocol: Protocol,
    split: Split,
    between: Between,
    rerank: str | None = None,
) -> tuple[Ranked, ...]:
    """Score people and rank the gallery, in each direction of a split.

    ``between(a, b)`` gives the distances between test rows, by their places in ``split.test``;
    where the re-ranking looks at training rows, these have the places after them.
    """
    place = np.full(len(sightings), -1)
    place[split.test] = np.arange(len(split.test))
    training = np.arange(len(split.train)) + len(split.test)
    persons = sightings.persons[split.train]
    rankings = []
    for query, gallery in split.directions:
        part = _reranked(between, place[query], place[gallery], training, persons, rerank)
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
    scored = scores.distances, scores.query_persons, scores.gallery_persons
    seen_by = sightings.cameras[query], sightings.cameras[gallery]
    junk = sightings.roles[gallery] == "junk"
    own = seen_by if protocol.cross_camera_only else (None, None)
    result = RankingResult.from_distances(
        *scored, query_cameras=own[0], gallery_cameras=own[1], junk=junk
    )
    # Pairs are counted if there are more than two cameras and sightings stand for themselves.
    cameras, pairs = np.unique(sightings.cameras).tolist(), None
    if len(cameras) > 2 and protocol.scoring == "single":
        pairs = camera_pairs(*scored, *seen_by, junk=junk, cameras=cameras)
    return Ranked(result, query, gallery, pairs)


def _reranked(
    between: Between,
    query: Rows,
    gallery: Rows,
    training: Rows,
    persons: NDArray[Any],
    rerank: str | None,
) -> Floats:
    """Distances of queries to gallery, replaced by re-ranked ones where asked for.

    `persons` are those of the training rows.
    """

    def measured(a: Rows, b: Rows) -> Floats:
        return np.maximum(between(a, b), 0.0)

    if rerank is None:
        return between(query, gallery)
    if rerank == "cross-view":
        return cross_view_reciprocal(between(query, gallery))
    if rerank == "k-reciprocal":
        both = np.concatenate([query, gallery])
        return k_reciprocal(MeasuredPoints(measured(both, both), len(query)))
    both = np.concatenate([gallery, training])
    asked, known = measured(query, both), MeasuredPoints(measured(both, both), len(gallery))
    if rerank == "ssm":
        return smoothed_manifold(asked, known, persons)
    if rerank == "ol-mans":
        return adapt_locally(asked, known)
    raise unknown_name("re-ranking", rerank, RERANKERS)
