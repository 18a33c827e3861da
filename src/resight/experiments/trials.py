"""Trials: what one learner reached on one split, and how distances become rankings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import unknown_name
from resight.evaluation.metrics import camera_pairs
from resight.evaluation.pairwise import MeasuredPoints
from resight.evaluation.ranking import RankingResult
from resight.evaluation.reranking import cross_view_reciprocal, k_reciprocal
from resight.evaluation.supervised_reranking import adapt_locally, smoothed_manifold
from resight.plans import RERANKERS
from resight.protocols import Protocol, Split, person_scores, scored_persons
from resight.tuning.gram import Between, Floats, Rows

RANKS = (1, 5, 10, 20)
LABELS = ("direction", "query", "query_camera", "top_paths")


class Ranked(NamedTuple):
    """The rankings of one direction, and the sightings (rows of the dataset) that were ranked."""

    result: RankingResult
    query_rows: Rows
    gallery_rows: Rows
    cameras: dict[str, Any] | None = None  # where three or more cameras are ranked

    def to_rows(self, sightings: Sightings, direction: int) -> list[dict[str, str]]:
        """Return rows of `rankings.csv`, without the numbers of run and split."""
        paths, cameras = sightings.paths, sightings.cameras
        found, rows = paths[self.gallery_rows].tolist(), []
        for row, source in zip(self.result.to_rows(), self.query_rows, strict=True):
            top = "|".join(found[int(place)] for place in row["top"].split())
            own = f"{direction}", str(paths[source]), str(cameras[source]), top
            rows.append({**dict(zip(LABELS, own, strict=True)), **row})
        return rows


@dataclass(frozen=True)
class Trial:
    """What one learner reached on one split."""

    rankings: tuple[Ranked, ...]  # one for each direction
    params: dict[str, Any]
    fit_s: float
    choice: list[dict[str, Any]] | None = None  # how each candidate scored
    warnings: tuple[str, ...] = ()  # what the learner had to say about its fit

    def mean(self, measure: Callable[[RankingResult], Any]) -> Any:
        """Mean over directions."""
        return np.mean([measure(one.result) for one in self.rankings], axis=0).tolist()

    def rank(self, k: int) -> float:
        """Fraction found within the first k, mean of directions."""
        return float(self.mean(lambda result: result.rank(k)))

    def figures(self) -> dict[str, Any]:
        """Return it in plain types, without the rankings themselves."""
        return {
            "ranks": {f"rank{k}": self.rank(k) for k in RANKS},
            "map": self.mean(lambda result: result.mean_average_precision),
            "params": self.params,
            "fit_s": self.fit_s,
            "choice": self.choice,
            "warnings": list(self.warnings),
        }

    def to_dict(self, sightings: Sightings) -> dict[str, Any]:
        """Return all that a result tells of it, in plain types."""
        rows = [one.to_rows(sightings, number) for number, one in enumerate(self.rankings)]
        return {
            **self.figures(),
            "minp": self.mean(lambda result: result.mean_inverse_negative_penalty),
            "curve": self.mean(lambda result: result.cmc[:50]),
            "camera_pairs": [one.cameras for one in self.rankings if one.cameras],
            "rankings": list(chain.from_iterable(rows)),
        }


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
    sightings: Sightings, protocol: Protocol, query: Rows, gallery: Rows, distances: Floats
) -> Ranked:
    """Score people and rank the gallery of one direction, from distances (n_query, n_gallery)."""
    asked, held = scored_persons(sightings, query), scored_persons(sightings, gallery)
    scores = person_scores(distances, asked, held, protocol.scoring)
    query, gallery = query[scores.query_rows], gallery[scores.gallery_rows]
    scored = scores.distances, scores.query_persons, scores.gallery_persons
    seen_by = sightings.cameras[query], sightings.cameras[gallery]
    junk = sightings.roles[gallery] == "junk"
    q, g = seen_by if protocol.cross_camera_only else (None, None)
    result = RankingResult.from_distances(*scored, query_cameras=q, gallery_cameras=g, junk=junk)
    # Pairs are counted if there are more than two cameras and sightings stand for themselves.
    cameras, pairs = np.unique(sightings.cameras).tolist(), None
    if len(cameras) > 2 and protocol.scoring == "single":
        pairs = camera_pairs(*scored, *seen_by, junk=junk, cameras=cameras)
    return Ranked(result, query, gallery, pairs)


def _reranked(
    between: Between, query: Rows, gallery: Rows, training: Rows, persons: Any, rerank: str | None
) -> Floats:
    """Distances of queries to gallery, re-ranked where asked for; training rows show `persons`."""

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
