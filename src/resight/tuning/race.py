"""Searching for the best setting on training people alone: stage by stage, each a race."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from resight.errors import InputError
from resight.tuning import candidates as allowed
from resight.tuning.candidates import AUTO_CANDIDATES, AUTO_FOLDS, AUTO_REPEATS, Candidate
from resight.tuning.cross_validation import person_folds, person_precisions
from resight.tuning.fold_metrics import Fold, camera_pairs, codes_of
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Setting

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
_BEHIND = 2.0  # paired standard errors behind the leader at which a setting leaves the race
_ROUNDS = 2  # of changing one descriptor's weight


@dataclass
class Tried:
    """A setting with the scores of held-out people, fold by fold.

    Attributes
    ----------
    setting : Setting
    stage : str
        In which it was tried.
    people : list of int arrays
        Of each fold, who was held out.
    scores : list of arrays
        Their average precisions; shorter than `people` where the setting left the race.
    won : bool
        Whether its stage ended with it.
    """

    setting: Setting
    stage: str
    people: list[Rows]
    scores: list[Floats] = field(default_factory=list)
    won: bool = False

    @property
    def mean(self) -> float:
        """Mean over people of all folds it ran."""
        return float(np.mean(np.concatenate(self.scores)))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over people."""
        return _over_people(self.people, self.scores)[1]

    def ahead_of(self, other: Tried) -> tuple[float, float]:
        """Mean difference to another setting over the folds both ran, and its standard error.

        Paired: each person is scored under both, and a person held out in several repeats counts
        once, with the mean.
        """
        differences = [a - b for a, b in zip(self.scores, other.scores, strict=False)]
        return _over_people(self.people, differences)

    def as_dict(self) -> dict[str, Any]:
        """Return a row of the table of candidates, in plain types."""
        return {
            "stage": self.stage,
            **self.setting.as_dict(),
            "map": self.mean,
            "standard_error": self.standard_error,
            "folds": len(self.scores),
            "won": self.won,
        }


def _over_people(people: list[Rows], values: list[Floats]) -> tuple[float, float]:
    """Mean over people and its standard error; a person's values are averaged first."""
    who = np.concatenate(people[: len(values)])
    counts = np.bincount(who)
    means = np.bincount(who, np.concatenate(values))[counts > 0] / counts[counts > 0]
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


class Search:
    """Greedy search over settings by repeated person-disjoint folds, in Gram space.

    Stages: kernel and regulariser; mirror images; fusion of descriptors; their weights; kernel
    and regulariser again, near what was found; further learners; a metric for each pair of
    cameras. A stage that offers nothing (one descriptor, two cameras) is left out. Each starts
    from the winner of the one before and leaves it only for a gain of more than one standard
    error; among what is within one standard error of the best, the simplest wins.

    A stage is a race: after each fold, settings that are more than two standard errors behind the
    leader leave, and after all folds of one repeat those that are not ahead of the winner of the
    stage before. All standard errors are of paired differences over people.

    Parameters
    ----------
    space : GramSpace
        Descriptors; with `mirrored` the second half of them are those of the first half, averaged
        over mirror images.
    rows, persons, cameras : arrays (N,)
        Training rows of one split; nothing else of the space is looked at. Without cameras
        (None), every sighting counts as its own.
    n_folds, n_repeats : int
        Person-disjoint folds, and how often they are drawn anew.
    budget : float, optional
        Seconds; nothing new is tried once they are over. One setting must get through one fold.
    seed : int
        Draws the folds.
    pairs : bool
        Whether a metric for each pair of cameras may be chosen.

    Attributes
    ----------
    tried : list of Tried
    stopped : str or None
        Where the budget ended the search, if it did.
    """

    def __init__(
        self,
        space: GramSpace,
        rows: Rows,
        persons: NDArray[Any],
        cameras: NDArray[Any] | None,
        *,
        mirrored: bool = False,
        n_folds: int = AUTO_FOLDS,
        n_repeats: int = AUTO_REPEATS,
        budget: float | None = None,
        seed: int = 0,
        pairs: bool = True,
    ) -> None:
        self.persons = codes_of(persons)
        self.cameras = None if cameras is None else codes_of(cameras)
        self.variants = variants_of(_only(space, rows), mirrored)
        self.folds = [
            fold
            for repeat in range(n_repeats)
            for fold in person_folds(persons, cameras, n_folds, seed + repeat)
        ]
        _refuse_lonely_cameras(persons, cameras)
        self.held = [np.unique(self.persons[held]) for _, held in self.folds]
        self.n_folds, self.pairs = n_folds, pairs
        self.tried: list[Tried] = []
        self.stopped: str | None = None
        self._end = None if budget is None else time.monotonic() + budget
        self._budget = budget

    def run(self, candidates: Sequence[Candidate] = AUTO_CANDIDATES) -> Setting:
        """Search and return the chosen setting; `tried` holds everything with its scores."""
        equal = (1.0,) * len(self.variants["plain"])
        best = self._first([Setting(candidate, equal) for candidate in candidates])
        if "mirror" in self.variants:
            best = self._better(best, "mirror", [replace(best.setting, variant="mirror")])
        if len(equal) > 1:
            fusions = [replace(best.setting, fusion=f) for f in allowed.AUTO_FUSIONS[1:]]
            best = self._better(best, "fusion", fusions)
            for _ in range(_ROUNDS):
                best = self._better(best, "weights", _reweighted(best.setting))
            best = self._better(best, "kernel again", _neighbours(best.setting, candidates))
        weights = sorted(product(allowed.AUTO_MEMBER_WEIGHTS, repeat=2), key=_simplicity)[1:]
        members = [replace(best.setting, xqda=x, knfst=n) for x, n in weights]
        best = self._better(best, "members", members)
        if self.pairs and self._pairs_suffice():
            best = self._better(best, "camera pairs", [replace(best.setting, per_pair=True)])
        return best.setting

    def _first(self, settings: list[Setting]) -> Tried:
        left = self._race("kernel", settings)
        if not left:
            raise InputError(
                f"the budget of {self._budget:g} s ran out before one setting was tried; give more "
                "seconds, fewer folds or fewer people"
            )
        return _simplest(left)

    def _better(self, best: Tried, stage: str, settings: list[Setting]) -> Tried:
        """Return the simplest of the clearly better settings, or what there was."""
        left = self._race(stage, settings, best)
        clear = [one for one in left if _exceeds(*one.ahead_of(best))]
        return _simplest(clear) if clear else best

    def _race(self, stage: str, settings: list[Setting], best: Tried | None = None) -> list[Tried]:
        """Score settings fold by fold; return those that stayed to the end."""
        seen = {one.setting for one in self.tried}
        runners = [Tried(one, stage, self.held) for one in settings if one not in seen]
        left = runners
        for number in range(len(self.folds)):
            ran = self._run_fold(number, left)
            if len(ran) < len(left):  # the budget is over: count whole folds only
                self._note_stop(stage, number)
                for one in ran if number else []:
                    one.scores.pop()
                left = (left if number else ran) if best is None else []
                break
            others = left if best is None else [*left, best]
            leader = max(others, key=lambda one: one.ahead_of(others[0])[0], default=None)
            left = [one for one in left if leader and not _exceeds(*leader.ahead_of(one), _BEHIND)]
            if best is not None and number + 1 >= self.n_folds:
                left = [one for one in left if one.ahead_of(best)[0] > 0.0]
        self.tried += [one for one in runners if one.scores]
        return left

    def _note_stop(self, stage: str, folds: int) -> None:
        """Remember the first stage that the budget cut short."""
        if self.stopped is None:
            self.stopped = (
                f"the budget of {self._budget:g} s was over in stage {stage!r} after {folds} of "
                f"{len(self.folds)} folds; what was found until then is used"
            )

    def _run_fold(self, number: int, runners: list[Tried]) -> list[Tried]:
        """Score settings on one fold until the budget is over; return those that were."""
        learn, held = self.folds[number]
        cameras = self.cameras
        folds = {
            variant: Fold(
                spaces,
                learn,
                held,
                self.persons[learn],
                None if cameras is None else cameras[learn],
                None if cameras is None else cameras[held],
            )
            for variant, spaces in self.variants.items()
        }
        for count, one in enumerate(runners):
            if self._end is not None and time.monotonic() > self._end:
                return runners[:count]
            one.scores.append(self._scores(folds[one.setting.variant], one.setting, held))
        return runners

    def _scores(self, fold: Fold, setting: Setting, held: Rows) -> Floats:
        """Average precisions of the people held out."""
        try:
            distances = fold.distances(setting)
        except (InputError, LinAlgError):  # too small a regulariser for this kernel: it loses
            return np.zeros(len(np.unique(self.persons[held])))
        cameras = None if self.cameras is None else self.cameras[held]
        return person_precisions(distances, self.persons[held], cameras)

    def _pairs_suffice(self) -> bool:
        """Tell whether there are three cameras and some pair has people enough in each fold."""
        cameras = self.cameras
        if cameras is None or cameras.max() < 2:
            return False
        return all(camera_pairs(self.persons[learn], cameras[learn]) for learn, _ in self.folds)


def variants_of(space: GramSpace, mirrored: bool) -> dict[str, list[GramSpace]]:
    """Return the descriptors of a space by variant; see `Search`."""
    spaces = space.descriptors()
    if not mirrored:
        return {"plain": spaces}
    half = len(spaces) // 2
    return {"plain": spaces[:half], "mirror": spaces[half:]}


def _only(space: GramSpace, rows: Rows) -> GramSpace:
    """Copy the products between some rows: nothing else can be looked at by accident."""
    places = rows if space.trainable is None else np.searchsorted(space.trainable, rows)
    part = GramSpace([])
    part.grams = [gram[np.ix_(places, rows)] for gram in space.grams]
    part.squares = [squares[rows] for squares in space.squares]
    part.groups = list(space.groups)
    return part


def _exceeds(difference: float, standard_error: float, times: float = 1.0) -> bool:
    return difference > times * standard_error


def _simplest(tried: list[Tried]) -> Tried:
    """Choose the first, in order of simplicity, within one standard error of the best."""
    best = max(tried, key=lambda one: one.mean)
    chosen = next(one for one in tried if not _exceeds(*best.ahead_of(one)))
    chosen.won = True
    return chosen


def _reweighted(setting: Setting) -> list[Setting]:
    """Change one descriptor's weight: first leave one out, then halve one, then double one."""
    changed = []
    for factor in allowed.AUTO_WEIGHTS:
        for i in range(len(setting.weights)):
            weights = tuple(w * factor if j == i else w for j, w in enumerate(setting.weights))
            if any(weights):
                changed.append(replace(setting, weights=weights))
    return list(dict.fromkeys(changed))


def _neighbours(setting: Setting, candidates: Sequence[Candidate]) -> list[Setting]:
    """Other regularisers for the same kernel, and other kernels with the same regulariser."""
    own = setting.candidate
    return [
        replace(setting, candidate=one)
        for one in candidates
        if one.kernel_params() == own.kernel_params()
        or (one.reg_form, one.reg) == (own.reg_form, own.reg)
    ]


def _simplicity(weights: tuple[float, ...]) -> tuple[int, tuple[float, ...]]:
    return sum(weight > 0 for weight in weights), weights


def _refuse_lonely_cameras(persons: NDArray[Any], cameras: NDArray[Any] | None) -> None:
    """Refuse a camera from which nothing can be learned about another."""
    if cameras is None:
        return
    for camera in np.unique(cameras):
        others = persons[cameras != camera]
        if not np.isin(persons[cameras == camera], others).any():
            raise InputError(
                f"camera {camera} has no labelled person who is also seen by another camera, so "
                "nothing can be learned about it; label at least one, or leave the camera out"
            )
