"""Choosing the regulariser of landmark k-XQDA over training people, from sums alone.

Sums of different people add up, so the model without some people costs one addition and a pencil
as small as the number of landmarks; no training sighting is read again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from resight.learners._base import squared_euclidean
from resight.learners._landmark_pencil import LandmarkPencil
from resight.learners._landmark_sums import LandmarkStatistics, total
from resight.learners._pencil import direction_weights
from resight.learners.kxqda import KXQDA
from resight.tuning.candidates import CV, Candidate
from resight.tuning.cross_validation import Choice, held_out_map, people_in_folds
from resight.tuning.gram import Floats, Rows

FOLD_PEOPLE = 100  # people held out in a fold: their ranking costs little, the others learn
_REGULARISERS = tuple(
    (candidate.reg_form, candidate.reg)
    for candidate in CV
    if (candidate.kernel, candidate.width) == ("rbf", 1.0)
)


def regularisers(learner: KXQDA) -> tuple[Candidate, ...]:
    """Return the regularisers among which the exact model chooses, for this learner's kernel."""
    kernel = learner.kernel if isinstance(learner.kernel, str) else "callable"
    return tuple(Candidate(kernel, learner.width, reg_form, reg) for reg_form, reg in _REGULARISERS)


def held_out_groups(
    persons: Rows, cameras: Rows, n_folds: int, most: int = FOLD_PEOPLE
) -> NDArray[np.intp]:
    """Return for each row its fold to be held out, or `n_folds` where it always learns.

    People seen by one camera only are never held out.
    """
    groups = np.full(len(persons), n_folds)
    otherwise = "give reg=a number instead of choosing it"
    for fold, people in enumerate(people_in_folds(persons, cameras, n_folds, 0, otherwise)):
        groups[np.isin(persons, people[:most])] = fold
    return groups


def choose_regulariser(
    parts: Sequence[LandmarkStatistics],
    held: Sequence[tuple[Floats, Rows, Rows]],
    centre: Floats,
    candidates: Sequence[Candidate],
) -> Choice:
    """Choose among regularisers by the mean average precision on held-out people.

    `parts` are statistics of each fold's people, and of those in no fold; `held` are for each fold
    the features (n, q), less the `centre`, persons and cameras of its rows.
    """
    scores = np.empty((len(candidates), len(held)))
    for fold, (F, persons, cameras) in enumerate(held):
        others: LandmarkStatistics = total(part for i, part in enumerate(parts) if i != fold)
        pencil = LandmarkPencil(others, centre)
        for index, candidate in enumerate(candidates):
            mu, V = pencil.solve(candidate.reg, candidate.reg_form)
            embedding = F @ (V * direction_weights(mu, quiet=True))  # it simply scores low
            distances = squared_euclidean(embedding, embedding)
            scores[index, fold] = held_out_map(distances, persons, cameras)
    best = int(np.argmax(scores.mean(axis=1)))
    return Choice(candidates[best], tuple(candidates), scores)
