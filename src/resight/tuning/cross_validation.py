"""Choosing a setting by cross-validation over training people.

Exact k-XQDA is chosen in Gram space, the regulariser of landmark k-XQDA from sums alone: those of
different people add up, so the model without some people costs one addition and a pencil as small
as the number of landmarks, and no training sighting is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import seen_by_two
from resight.errors import InputError
from resight.evaluation.metrics import mean_average_precision
from resight.learners._base import squared_euclidean
from resight.learners._landmark_sums import LandmarkPencil, LandmarkStatistics, total
from resight.learners._solvers import direction_weights
from resight.learners.kxqda import KXQDA
from resight.tuning.candidates import CV, Candidate
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import Floats, GramSpace, Rows
from resight.tuning.settings import PLAIN, Part

FOLD_PEOPLE = 100  # people held out in a fold: their ranking costs little, the others learn


class Decision(NamedTuple):
    """What was chosen on training people, and how everything else scored."""

    chosen: dict[str, Any]
    candidates: list[dict[str, Any]]
    words: str
    note: str | None = None  # what the choice could not look at

    @classmethod
    def best_of(cls, candidates: Sequence[Candidate], scores: Floats) -> Decision:
        """Choose by the mean over folds of `scores`; equal ones go to the earlier candidate.

        They are mean average precisions on held-out people, (n_candidates, n_folds).
        """
        chosen = candidates[int(np.argmax(scores.mean(axis=1)))].params()
        tried = [
            {**candidate.params(), "map": float(row.mean()), "sd": float(row.std(ddof=1))}
            for candidate, row in zip(candidates, scores, strict=True)
        ]
        return cls(chosen, tried, ", ".join(f"{name} {value}" for name, value in chosen.items()))

    @property
    def sentence(self) -> str:
        """Say what was chosen and why."""
        told, scores = f"chose {self.words}", [row["map"] for row in self.candidates]
        if scores:
            told += (
                f"; of {len(scores)} settings tried on held-out training people the best alone "
                f"reaches mAP {100 * max(scores):.1f}"
            )
        plain = [row["map"] for row in self.candidates if row.get("learner") in PLAIN]
        told += f", not learning {100 * max(plain):.1f}" if plain else ""
        return told if self.note is None else f"{told}; {self.note}"


def choose(
    space: GramSpace,
    rows: Rows,
    persons: NDArray[Any],
    cameras: NDArray[Any],
    candidates: Sequence[Candidate],
    n_folds: int,
    seed: int = 0,
) -> Decision:
    """Choose among candidates by person-disjoint folds of the training `rows` of one split only.

    Of the products of the whole dataset only the entries between `rows` are looked at. The score
    is the mean average precision across cameras: with one image a camera it is the mean reciprocal
    rank, which varies less between folds of few people than rank 1 does.
    """
    scores = np.empty((len(candidates), n_folds))
    for number, (learn, held) in enumerate(person_folds(persons, cameras, n_folds, seed)):
        fold = Fold([space], rows[learn], rows[held], persons[learn], cameras[learn])
        for index, candidate in enumerate(candidates):
            distances = fold.part_distances(Part("kxqda", (1.0,), (candidate,)))
            scores[index, number] = held_out_map(distances, persons[held], cameras[held])
    return Decision.best_of(candidates, scores)


def regularisers(learner: KXQDA) -> tuple[Candidate, ...]:
    """Return the regularisers among which the exact model chooses, for this learner's kernel."""
    kernel = learner.kernel if isinstance(learner.kernel, str) else "callable"
    usual = [one for one in CV if (one.kernel, one.width) == ("rbf", 1.0)]
    return tuple(replace(one, kernel=kernel, width=learner.width) for one in usual)


def held_out_groups(persons: Rows, cameras: Rows, n_folds: int, most: int = FOLD_PEOPLE) -> Rows:
    """Return for each row its fold to be held out, or `n_folds` where it always learns.

    People seen by one camera only are never held out.
    """
    groups = np.full(len(persons), n_folds)
    otherwise = "give reg=a number instead of choosing it"
    for fold, people in enumerate(people_in_folds(persons, cameras, n_folds, 0, otherwise)):
        groups[np.isin(persons, people[:most])] = fold
    return groups


def choose_regulariser(
    parts: Sequence[LandmarkStatistics], held: Sequence[tuple[Floats, Rows, Rows]], learner: KXQDA
) -> Decision:
    """Choose a learner's regulariser by the mean average precision on held-out people.

    `parts` are statistics of each fold's people, and of those in no fold; `held` are for each fold
    the features (n, q) of the learner's landmarks, persons and cameras of its rows.
    """
    candidates, centre = regularisers(learner), learner.nystrom_.centre
    scores = np.empty((len(candidates), len(held)))
    for fold, (F, persons, cameras) in enumerate(held):
        pencil = LandmarkPencil(total(part for i, part in enumerate(parts) if i != fold), centre)
        for index, candidate in enumerate(candidates):
            mu, V = pencil.solve(candidate.reg, candidate.reg_form)
            embedding = F @ (V * direction_weights(mu, quiet=True))  # it simply scores low
            distances = squared_euclidean(embedding, embedding)
            scores[index, fold] = held_out_map(distances, persons, cameras)
    return Decision.best_of(candidates, scores)


def person_folds(
    persons: NDArray[Any], cameras: NDArray[Any] | None, n_folds: int, seed: int = 0
) -> list[tuple[Rows, Rows]]:
    """Split rows into folds by person: (rows to learn from, rows held out) for each fold.

    The order of people comes from digests, so it depends on no library's random numbers. Only
    people seen by two cameras are counted, so that every fold can learn and be scored; without
    cameras, every sighting counts as its own.
    """
    views = np.arange(len(persons)) if cameras is None else cameras
    folds = []
    for people in people_in_folds(persons, views, n_folds, seed, "ask for fewer folds"):
        held = np.isin(persons, people)
        folds.append((np.flatnonzero(~held), np.flatnonzero(held)))
    return folds


def people_in_folds(
    persons: NDArray[Any], cameras: NDArray[Any], n_folds: int, seed: int, otherwise: str
) -> list[list[Any]]:
    """Divide the people seen by two cameras; refuse too few, with what can be done otherwise."""
    people = seen_by_two(persons, cameras)
    needed = 2 * n_folds
    if len(people) < needed:
        raise InputError(
            f"{n_folds} folds need at least {needed} people seen by two cameras; there are "
            f"{len(people)}. Label more people, or {otherwise}"
        )
    ordered = sorted(people.tolist(), key=lambda person: digest_of(f"{seed}", f"{person}"))
    return [ordered[fold::n_folds] for fold in range(n_folds)]


def some_people(persons: NDArray[Any], n_rows: int) -> Rows:
    """Return the rows of people, in the order of digests, until there are enough rows."""
    names, codes, counts = np.unique(persons, return_inverse=True, return_counts=True)
    order = np.array(sorted(range(len(names)), key=lambda i: digest_of(str(names[i]))))
    enough = int(np.searchsorted(np.cumsum(counts[order]), n_rows)) + 1
    return np.flatnonzero(np.isin(codes, order[:enough]))


def held_out_map(distances: Floats, persons: NDArray[Any], cameras: NDArray[Any]) -> float:
    """Mean average precision of each camera's sightings against each other camera's."""
    values = [
        mean_average_precision(distances[np.ix_(query, gallery)], persons[query], persons[gallery])
        for query, gallery in directions(persons, cameras)
    ]
    return float(np.mean(values))


def directions(persons: NDArray[Any], cameras: NDArray[Any]) -> Iterator[tuple[Rows, Rows]]:
    """Yield queries of one camera and the gallery of another, for all ordered pairs."""
    for a, b in permutations(np.unique(cameras), 2):
        gallery = np.flatnonzero(cameras == b)
        query = np.flatnonzero((cameras == a) & np.isin(persons, persons[gallery]))
        if len(query):
            yield query, gallery
