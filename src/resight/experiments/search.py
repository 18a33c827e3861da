"""Searching for the best setting of k-XQDA on training people alone, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.experiments.candidates import AUTO_FOLDS, AUTO_REPEATS, CV, Candidate
from resight.experiments.gram import GramSpace, fit_in_gram_space
from resight.experiments.registry import learner_spec
from resight.experiments.selection import held_out_map, person_folds

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
_WEIGHTS = (0.0, 0.5, 2.0)  # tried for one descriptor at a time, the others at 1


@dataclass(frozen=True)
class Setting:
    """Everything AutoKXQDA chooses.

    Attributes
    ----------
    candidate : Candidate
        Kernel and regulariser of k-XQDA.
    weights : tuple of float
        One for each descriptor.
    fusion : "concatenate" or "distance-sum"
        One k-XQDA on all descriptors side by side, or one on each, distances added.
    members : tuple of str
        Learners whose distances are added, each in units of its own mean distance.
    """

    candidate: Candidate
    weights: tuple[float, ...]
    fusion: str = "concatenate"
    members: tuple[str, ...] = ("kxqda",)

    def parts(self) -> Iterator[tuple[str, dict[str, Any], tuple[float, ...]]]:
        """Yield (learner, parameters, descriptor weights) of everything that is added up."""
        for member in self.members:
            params = self.candidate.params() if member == "kxqda" else {}
            if member != "kxqda" or self.fusion == "concatenate":
                yield member, params, self.weights
                continue
            for i, weight in enumerate(self.weights):
                if weight:
                    alone = tuple(weight if j == i else 0.0 for j in range(len(self.weights)))
                    yield member, params, alone

    def as_dict(self) -> dict[str, Any]:
        """Return the setting in plain types."""
        return {
            **self.candidate.params(),
            "weights": list(self.weights),
            "fusion": self.fusion,
            "members": list(self.members),
        }


@dataclass(frozen=True)
class Tried:
    """A setting with its score on held-out people, in each fold of each repeat."""

    setting: Setting
    scores: Floats

    @property
    def mean(self) -> float:
        """Mean over folds and repeats."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, folds taken as independent."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))


class Search:
    """Greedy search over settings by repeated person-disjoint folds, in Gram space.

    Stages: kernel and regulariser; descriptor weights; fusion; further learners. Each stage
    starts from the winner of the one before and leaves it only for a gain of more than one
    standard error, so that the simpler setting wins ties. Within the first stage, candidates
    are listed from simple to specific and the simplest within one standard error of the best
    is taken.

    Parameters
    ----------
    space : GramSpace
    rows, persons, cameras : arrays (N,)
        Training rows of one split; nothing else of the space is looked at.
    budget : float, optional
        Seconds; no new setting is tried once they are over. The first must fit.
    """

    def __init__(
        self,
        space: GramSpace,
        rows: Rows,
        persons: NDArray[Any],
        cameras: NDArray[Any],
        *,
        n_folds: int = AUTO_FOLDS,
        n_repeats: int = AUTO_REPEATS,
        budget: float | None = None,
        seed: int = 0,
    ) -> None:
        self.space, self.rows = space, rows
        self.persons, self.cameras = persons, cameras
        self.folds = [
            fold
            for repeat in range(n_repeats)
            for fold in person_folds(persons, cameras, n_folds, seed + repeat)
        ]
        self.tried: list[Tried] = []
        self._end = None if budget is None else time.monotonic() + budget
        self._budget = budget

    def run(self, candidates: Sequence[Candidate] = CV) -> Setting:
        """Search and return the chosen setting; `tried` holds everything with its scores."""
        equal = (1.0,) * len(self.space.groups)
        best = self._simplest([Setting(candidate, equal) for candidate in candidates])
        if len(self.space.groups) > 1:
            best = self._improved(best, self._reweighted(best.setting))
            best = self._improved(best, [replace(best.setting, fusion="distance-sum")])
        more = (("kxqda", "xqda"), ("kxqda", "knfst"), ("kxqda", "xqda", "knfst"))
        best = self._improved(best, [replace(best.setting, members=one) for one in more])
        return best.setting

    def _reweighted(self, setting: Setting) -> list[Setting]:
        changed = []
        for i in range(len(setting.weights)):
            for weight in _WEIGHTS:
                weights = tuple(weight if j == i else w for j, w in enumerate(setting.weights))
                if any(weights):
                    changed.append(replace(setting, weights=weights))
        return changed

    def _simplest(self, settings: list[Setting]) -> Tried:
        tried = self._try(settings)
        if not tried:
            raise InputError(
                f"the budget of {self._budget:g} s is over before one setting was tried; give more "
                "seconds, fewer folds or fewer people"
            )
        best = max(tried, key=lambda one: one.mean)
        return next(one for one in tried if one.mean >= best.mean - best.standard_error)

    def _improved(self, current: Tried, settings: list[Setting]) -> Tried:
        better = [
            one
            for one in self._try(settings)
            if _gain(one, current) > _standard_error(one.scores - current.scores)
        ]
        return max(better, key=lambda one: one.mean, default=current)

    def _try(self, settings: list[Setting]) -> list[Tried]:
        tried = []
        for setting in settings:
            if self._end is not None and time.monotonic() > self._end:
                break
            tried.append(Tried(setting, np.array([self._score(setting, *f) for f in self.folds])))
        self.tried += tried
        return tried

    def _score(self, setting: Setting, learn: Rows, held: Rows) -> float:
        persons, cameras = self.persons, self.cameras
        distances = setting_distances(
            setting, self.space, self.rows[learn], self.rows[held], persons[learn], cameras[learn]
        )
        return held_out_map(distances, persons[held], cameras[held])


def setting_distances(
    setting: Setting,
    space: GramSpace,
    train: Rows,
    test: Rows,
    persons: NDArray[Any],
    cameras: NDArray[Any],
) -> Floats:
    """Fit a setting on training rows and return the distances between test rows, (n, n)."""
    total = np.zeros((len(test), len(test)))
    for name, params, weights in setting.parts():
        of_blocks = np.repeat(weights, space.groups).tolist()
        products = space.products(train, test, weights=of_blocks)
        made = learner_spec(name).make(**params)
        learner, rows = fit_in_gram_space(made, products, persons, cameras)
        distances = learner.distances(rows, rows)
        total += distances / distances.mean()
    return total


def _gain(one: Tried, other: Tried) -> float:
    return one.mean - other.mean


def _standard_error(differences: Floats) -> float:
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))
