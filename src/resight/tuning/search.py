"""Choosing on training people alone: which metrics on which descriptors, with which weights."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from resight._progress import progress
from resight.datasets.sightings import seen_by_two
from resight.errors import InputError
from resight.tuning import candidates as allowed
from resight.tuning.candidates import KNFST_KERNEL, XQDA
from resight.tuning.cross_validation import person_folds
from resight.tuning.fold_metrics import Fold, codes_of, threads_for
from resight.tuning.gram import Floats, GramSpace, Rows
from resight.tuning.mixing import Comparisons, Likelihood
from resight.tuning.settings import PLAIN, Part, Setting

MIN_PEOPLE = 16  # from fewer nothing is chosen: they say too little
_CLEARLY = 2.0  # difference of log-likelihoods by which what is less usual must be better
_ERRORS = 2.0  # standard errors by which other weights must be better than a network's cosine
_NEGLIGIBLE = 0.03  # share below which a part is left out of the mixture


@dataclass
class Tried:
    """A part with what held-out people say of it, fold by fold; all folds if among the best."""

    part: Part
    stage: str  # in which it was tried
    distances: list[NDArray[np.float32]] = field(default_factory=list)  # (n, n), rows held out
    scores: list[Floats] = field(default_factory=list)  # average precisions of people held out
    share: float = 0.0  # of the mixture that was chosen
    failed: bool = False  # could not be fitted on some fold

    @property
    def mean(self) -> float:
        """Mean average precision over people of all folds it ran."""
        return float(np.mean(np.concatenate(self.scores))) if self.scores else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return a row of the table of candidates, in plain types."""
        of_all = np.concatenate(self.scores) if self.scores else np.zeros(1)
        error = of_all.std(ddof=min(1, len(of_all) - 1)) / np.sqrt(len(of_all))
        return {
            "stage": self.stage,
            **self.part.as_dict(),
            "map": self.mean,
            "standard_error": float(error),
            "folds": len(self.scores),
            "share": self.share,
            "won": self.share > 0.0,
        }


class _OutOfTimeError(Exception):
    pass


class Search:
    """Choice of a mixture of metrics by person-disjoint folds, in Gram space.

    With `mirrored` the second half of the space's descriptors are those of the first half, averaged
    over mirror images. `rows`, `persons` and `cameras` (N,) are the training rows of one split;
    nothing else of the space is looked at. `n_folds`, `n_repeats`, `budget` and `seed` are those
    of `AutoKXQDA`.
    """

    def __init__(
        self,
        space: GramSpace,
        rows: Rows,
        persons: NDArray[Any],
        cameras: NDArray[Any] | None,
        *,
        mirrored: bool = False,
        n_folds: int | None = None,
        n_repeats: int | None = None,
        budget: float | None = None,
        seed: int = 0,
    ) -> None:
        views = np.arange(len(persons)) if cameras is None else cameras
        self.people = len(seen_by_two(persons, views))
        self.persons = codes_of(persons)
        self.cameras = None if cameras is None else codes_of(cameras)
        if not self.people:
            raise InputError(
                f"none of the {self.persons.max() + 1} people is seen by two cameras, so nothing "
                "can be learned about them; give a person the same name in every camera"
            )
        self.variants = variants_of(space.only(rows), mirrored)
        self.n_folds, repeats = folds_for(self.people, n_folds, n_repeats)
        self._folds: dict[str, list[Fold]] = {}
        self.divisions: list[tuple[Rows, Rows]] = []
        if self.people >= max(MIN_PEOPLE, 2 * self.n_folds):
            for repeat in range(repeats):
                self.divisions += person_folds(persons, cameras, self.n_folds, seed + repeat)
        self.held = [
            Comparisons(self.persons[held], self._views(held)) for _, held in self.divisions
        ]
        self.tried: list[Tried] = []
        self.stopped: str | None = None  # why less was tried than could be, if so
        self._end = None if budget is None else time.monotonic() + budget
        self._budget = budget
        self._variant = "plain"

    def run(self) -> Setting:
        """Choose; `tried` holds everything with its scores."""
        with threads_for(len(self.persons)):
            return self._chosen()

    def _chosen(self) -> Setting:
        n = len(self.variants["plain"])
        if not self.divisions:
            return self._too_few()
        pool: list[Tried] = []
        try:
            with progress("choosing, fits", None) as self._advance:
                self._choose(n, pool)
        except _OutOfTimeError:
            self.stopped = (
                f"the budget of {self._budget:g} s was over after {len(self.tried)} metrics; the "
                "best mixture of those is used"
            )
        pool = [one for one in pool if not one.failed]
        if not pool:
            return safest(n, self.people)
        return self._mixture(pool)

    def _choose(self, n: int, pool: list[Tried]) -> None:
        """Add to the pool what may enter the mixture."""
        self._choose_variant(n)
        alone = [tuple(row) for row in np.eye(n).tolist()]  # weights that take one descriptor
        pool.append(self._best("plain", [self._plain(alone)]))
        self._learned("together" if n > 1 else "learned", (1.0,) * n, pool)
        if sum(len(space.blocks) for space in self.variants["plain"]) > 1:
            each_block = Part("kxqda", (1.0,) * n, (XQDA,), blocks=True)
            pool.append(self._best("block by block", [each_block]))
        if n == 1:
            return
        for weights in alone:
            self._learned("one descriptor", weights, pool)
        self._learned_together(alone, pool)

    def _too_few(self) -> Setting:
        """Choose nothing: the cosine of networks, or else the Euclidean distance of everything."""
        networks = [float(space.networks[0]) for space in self.variants["plain"]]
        part = Part("euclidean", (1.0,) * len(networks))
        told = "descriptors are compared by their Euclidean distance"
        if any(networks):
            part = Part("cosine", tuple(networks))
            told = "images are compared by the cosine of the network's vectors alone"
        needed = max(MIN_PEOPLE, 2 * self.n_folds)
        self.stopped = (
            f"{self.people} people seen by two cameras are too few to choose from (at least "
            f"{needed}), so {told}; label {needed - self.people} more"
        )
        return Setting(((1.0, part),))

    def _plain(self, alone: Sequence[tuple[float, ...]]) -> Part:
        """Weigh descriptors without learning: nothing is fitted, so nobody must be held out.

        Everybody is looked for among everybody. Cosine is taken where it is clearly likelier. A
        network's own cosine has learned to tell people apart: others must help by two standard
        errors.
        """
        everything = np.arange(len(self.persons))
        spaces, views = self.variants[self._variant], self._views(everything)
        whole = Fold(spaces, everything, everything, self.persons, views)
        held = Comparisons(self.persons, views)
        (e, euclidean), (c, cosine) = (self._weighed(whole, held, name, alone) for name in PLAIN)
        best = cosine if c < e - _CLEARLY else euclidean
        networks = [one for one, space in zip(alone, spaces, strict=True) if space.networks[0]]
        if networks:
            trusted = self._weighed(whole, held, "cosine", networks)[1]
            gain, own = (held.gaps(whole.part_distances(part)) for part in (best, trusted))
            gain -= own
            if gain.mean() <= _ERRORS * gain.std() / np.sqrt(len(gain)):
                return trusted
        return best

    def _weighed(
        self, whole: Fold, held: Comparisons, name: str, alone: Sequence[tuple[float, ...]]
    ) -> tuple[float, Part]:
        """Weigh descriptors, near equally, so that the negative log-likelihood is least."""
        parts = [Part(name, weights) for weights in alone]
        distances = np.stack([whole.part_distances(part) for part in parts])
        natural = np.array([whole.plain_unit(part) for part in parts])
        spreads = np.maximum([held.spread(one) for one in distances], 1e-9)
        likelihood = Likelihood([held], [distances / spreads[:, None, None]])
        default = natural * spreads
        strength = allowed.AUTO_PLAIN_STRENGTH / self.people
        weights = likelihood.fit(default / default.sum(), strength)
        raw = (weights / default / (weights / default).max()).round(3)
        return likelihood(weights)[0], Part(name, tuple((raw @ np.array(alone)).tolist()))

    def _choose_variant(self, n: int) -> None:
        """Take mirror images where they find more, by the default mixture's share of learning."""
        if "mirror" not in self.variants:
            return
        everything = (1.0,) * n
        parts = [Part("euclidean", everything), Part("kxqda", everything, (XQDA,))]
        means = {}
        for variant in self.variants:
            self._variant = variant
            found = [self._try(variant, part, self.n_folds).mean for part in parts]
            means[variant] = float(default_shares(parts, self.people) @ found)
        self._variant = max(means, key=lambda name: means[name])
        self._folds = {name: self._folds[name] for name in (self._variant,)}

    def _learned(self, stage: str, weights: tuple[float, ...], pool: list[Tried]) -> None:
        """Add the best k-XQDA with a linear and with another kernel, and KNFST."""
        for kernels in (allowed.AUTO_LINEAR, allowed.AUTO_CURVED):
            parts = [Part("kxqda", weights, (one,)) for one in kernels]
            pool.append(self._best(stage, parts))
        pool.append(self._best(stage, [Part("knfst", weights, (KNFST_KERNEL,))]))

    def _learned_together(self, alone: Sequence[tuple[float, ...]], pool: list[Tried]) -> None:
        """Add k-XQDA on the sum of each descriptor's best kernel, weighted by what it is worth."""
        singles = [one for one in pool if one.part.weights in alone and not one.failed]
        shares = self._shares(singles)
        worth, best = [], []
        for weights in alone:
            own = [i for i, one in enumerate(singles) if one.part.weights == weights]
            worth.append(float(shares[own].sum()))
            learned = [singles[i] for i in own if singles[i].part.learner == "kxqda"]
            kernels = {one.mean: one.part.kernels[0] for one in learned}
            best.append(kernels[max(kernels)] if kernels else XQDA)
        weights = tuple(round(one / sum(worth), 3) for one in worth)
        parts = [
            Part("kxqda", weights, tuple(replace(one, reg_form=form, reg=reg) for one in best))
            for form, reg in allowed.AUTO_SUM_REGULARISERS
        ]
        pool.append(self._best("sum of kernels", parts))

    def _best(self, stage: str, parts: Iterable[Part]) -> Tried:
        """Try parts on the folds of one repeat and the best of them on all others.

        Where people are many, one fold holds enough of them out to tell settings apart.
        """
        folds = self.n_folds if self.people <= allowed.AUTO_MANY else 1
        tried = [self._try(stage, part, folds) for part in parts]
        best = max(tried, key=lambda one: float(np.mean(np.concatenate(one.scores[:folds]))))
        self._run(best, len(self.divisions))
        return best

    def _try(self, stage: str, part: Part, folds: int) -> Tried:
        for one in self.tried:
            if one.part == part and one.stage in (stage, self._variant):
                return one
        made = Tried(part, stage)
        self._run(made, folds)
        self.tried.append(made)
        return made

    def _run(self, one: Tried, until: int) -> None:
        """Fit and score a part on more folds; parts that cannot be fitted score nothing."""
        for number in range(len(one.distances), until):
            if self._end is not None and time.monotonic() >= self._end:
                raise _OutOfTimeError
            held = self.divisions[number][1]
            self._advance(1)
            try:
                distances = self._fold(number).part_distances(one.part)
            except (InputError, LinAlgError):  # too small a regulariser for this kernel: it loses
                distances, one.failed = np.ones((len(held), len(held))), True
            one.distances.append(distances.astype(np.float32))
            one.scores.append(self.held[number].precisions(distances))

    def _fold(self, number: int) -> Fold:
        folds = self._folds.setdefault(self._variant, [])
        for learn, held in self.divisions[len(folds) : number + 1]:
            spaces = self.variants[self._variant]
            folds.append(Fold(spaces, learn, held, self.persons[learn], self._views(learn)))
        return folds[number]

    def _views(self, rows: Rows) -> Rows | None:
        return None if self.cameras is None else self.cameras[rows]

    def _mixture(self, pool: list[Tried]) -> Setting:
        """Weigh the pool, leave out what hardly counts, and weigh again.

        Where people held out are found as well without learning, nothing is learned.
        """
        plain = pool[0]
        for _ in range(2):
            shares = self._shares(pool)
            pool = [one for one, share in zip(pool, shares, strict=True) if share > _NEGLIGIBLE]
        shares, spreads = self._shares(pool), self._spreads(pool)
        if plain.part.learner in PLAIN and self._score(pool, shares / spreads) <= plain.mean:
            pool, shares, spreads = [plain], np.ones(1), np.ones(1)
        weights = shares / spreads
        for one, share in zip(pool, shares, strict=True):
            one.share = float(share)
        parts = ((float(w / weights.sum()), one.part) for w, one in zip(weights, pool, strict=True))
        return Setting(tuple(part for part in parts if part[0]), self._variant)

    def _score(self, pool: list[Tried], weights: Floats) -> float:
        """Mean average precision of a weighted sum over all folds."""
        scores = []
        for number in range(len(pool[0].distances)):
            total = sum(w * one.distances[number] for w, one in zip(weights, pool, strict=True))
            scores.append(self.held[number].precisions(total))
        return float(np.mean(np.concatenate(scores)))

    def _spreads(self, pool: list[Tried]) -> Floats:
        """Spread of each part's distances between strangers, in units of its training rows."""
        spreads = [
            np.mean([h.spread(d) for h, d in zip(self.held, one.distances, strict=False)])
            for one in pool
        ]
        return np.maximum(spreads, 1e-9)

    def _shares(self, pool: list[Tried]) -> Floats:
        """Shares of the likeliest mixture, near the default."""
        n, strength = len(pool[0].distances), allowed.AUTO_STRENGTH / self.people
        default = default_shares([one.part for one in pool], self.people)
        spreads = self._spreads(pool)[:, None, None].astype(np.float32)
        stacks = [np.stack([one.distances[i] for one in pool]) / spreads for i in range(n)]
        weights = Likelihood(self.held[:n], stacks).fit(default, strength)
        return weights / weights.sum()


def default_shares(parts: Sequence[Part], people: int) -> Floats:
    """Return the mixture to start from: the more people, the more weight of what is learned."""
    learned = people**2 / (people**2 + allowed.AUTO_HALF_LEARNED**2)
    plain = np.array([part.learner in PLAIN for part in parts])
    joint = np.array([sum(weight > 0 for weight in part.weights) > 1 for part in parts])
    shares = np.where(plain, 1.0 - learned, 0.0) / max(plain.sum(), 1)
    for kind, part in ((joint, allowed.AUTO_TOGETHER), (~joint, 1.0 - allowed.AUTO_TOGETHER)):
        own, other = ~plain & kind, ~plain & ~kind
        shares[own] = learned * (part if other.any() else 1.0) / max(own.sum(), 1)
    return shares / shares.sum()


def safest(n: int, people: int) -> Setting:
    """Return the default mixture: what is taken where there was no time to choose."""
    everything = (1.0,) * n
    parts = [Part("euclidean", everything), Part("kxqda", everything, (XQDA,))]
    return Setting(tuple(zip(default_shares(parts, people).tolist(), parts, strict=True)))


def folds_for(people: int, n_folds: int | None, n_repeats: int | None) -> tuple[int, int]:
    """Return folds and repeats: the fewer people, the more of them must be learned from."""
    folds, repeats = next(numbers for most, *numbers in allowed.AUTO_FOLDS if people <= most)
    return n_folds or min(folds, max(2, people // 2)), n_repeats or repeats


def variants_of(space: GramSpace, mirrored: bool) -> dict[str, list[GramSpace]]:
    """Return the descriptors of a space by variant; see `Search`."""
    spaces = space.descriptors()
    if not mirrored:
        return {"plain": spaces}
    half = len(spaces) // 2
    return {"plain": spaces[:half], "mirror": spaces[half:]}
