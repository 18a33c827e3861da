"""Whether anybody of a gallery is the query's person, by how far the first one stands out.

The evidence is a gap of log-distances: the mean of the second to the sixth nearest person minus the
nearest. It asks less of the metric than the nearest distance does: a query that is near to
everybody has small distances but no gap. How large a gap is by chance depends on how many people
are compared and on the tail of their distances, so both cases, present and absent, are simulated
for the gallery at hand. Whoever else is searched in it shows how near its strangers come, and
which of its sightings are near to everybody: distances to those are lengthened first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NEAREST = 6  # people that a gap looks at
MIN_PEOPLE = 8  # fewer have no tail to stand out from
_DEPTH = NEAREST + 3  # nearest strangers that are simulated
_DRAWN = 4000
_EVENED = 0.75  # part of the differences between sightings that is taken out
PRECISION = 0.8  # part of the answers `found` whose first unit is the query's person
_SURE = 1.645  # standard errors of that part: a one-sided bound of 95%
_TURNS, _STEPS = 4, 20  # of estimating how near strangers come, and how many others are there


def nearest(logs: Floats, depth: int = _DEPTH) -> Floats:
    """Return the smallest log-distances of each row, sorted, relative to the row's mean.

    Places that do not count are infinite.
    """
    counted = np.isfinite(logs)
    mean = np.where(counted, logs, 0.0).sum(axis=1) / counted.sum(axis=1)
    depth = min(depth, int(counted.sum(axis=1).min()))
    return np.sort(np.partition(logs, depth - 1, axis=1)[:, :depth], axis=1) - mean[:, None]


def nearness(logs: Floats) -> Floats:
    """Return how near each gallery sighting is to everybody, from log-distances (n_others, n).

    The mean over the second to the sixth nearest of the others: the nearest may be its own person.
    """
    few = min(NEAREST, len(logs))
    near = np.sort(np.partition(logs, few - 1, axis=0)[:few], axis=0)
    return np.asarray(near[min(1, few - 1) :].mean(axis=0))


def evened(distances: Floats, nearness: Floats) -> Floats:
    """Lengthen distances to sightings that are near to everybody, shorten the others."""
    return np.asarray(distances * np.exp(-_EVENED * (nearness - nearness.mean())))


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Choose at most so many of n places, evenly."""
    return np.linspace(0, n - 1, min(most, n)).astype(np.intp)


def gap(near: Floats) -> Floats:
    """Return how far the first of sorted log-distances stands out, (n,)."""
    return near[:, 1:NEAREST].mean(axis=1) - near[:, 0]


@dataclass(frozen=True)
class Strangers:
    """What log-distances of a query look like, relative to their mean."""

    quantiles: Floats  # (n,), to strangers in units of the query's spread, at (i + 1/2) / n
    steepness: float  # below the first quantile their share falls as exp(steepness x)
    mates: Floats  # (m,), to the query's person, of held-out queries in the same units
    spreads: Floats  # (m,), of the same queries
    people: int  # held-out people that all this was learned from

    def draw(self, n: int) -> tuple[Floats, Floats]:
        """Simulate queries: distances of the nearest of n strangers, sorted, and of the person."""
        rng = np.random.default_rng(0)
        who = np.arange(_DRAWN) % len(self.mates)
        depth = min(_DEPTH, n)
        # Order statistics of n uniform numbers, without drawing the other n - depth.
        sums = np.cumsum(rng.exponential(size=(_DRAWN, depth)), axis=1)
        rest = rng.gamma(n - depth + 1, size=(_DRAWN, 1))
        share = sums / (sums[:, -1:] + rest)
        # The nearest thin out exponentially: on a line over the logarithm of the share, as wide as
        # the quantiles say. These themselves, pooled over queries, would make large gaps too rare.
        first, last = self._at(np.array([1.0, depth]) / (n + 1.0))
        near = first + (last - first) * np.log(share * (n + 1.0)) / np.log(depth)
        return near * self.spreads[who, None], self.mates[who] * self.spreads[who]

    def fit(self, others: Floats, n: int) -> tuple[float, float]:
        """Return how to scale and move simulated strangers so that they are those of a gallery.

        `others` (m, depth) is what `nearest` gives for other queries among the same n people. Some
        of them are there, so the first of each is left out; how many is estimated along with it.
        """
        if len(others) < MIN_PEOPLE:
            return 1.0, 0.0
        near, mates = self.draw(n)
        k = min(NEAREST + 1, others.shape[1], near.shape[1])
        cases = [case[:, 1:k] for case in (near, np.sort(np.column_stack([near, mates]), axis=1))]
        seen, p = others[:, 1:k], 0.5  # p: how many of them are there
        for _ in range(_TURNS):
            weights = np.array([1.0 - p, p])
            scale = _spacing(seen) / float(weights @ [_spacing(case) for case in cases])
            moved = float(seen.mean() - scale * (weights @ [case.mean() for case in cases]))
            odds = Expected.of(self, n, (scale, moved)).log_odds(gap(others))
            for _ in range(_STEPS):
                p = float(np.clip(logistic(odds + np.log(p / (1.0 - p))).mean(), 0.05, 0.95))
        return scale, moved

    def _at(self, share: Floats) -> Floats:
        places = (np.arange(len(self.quantiles)) + 0.5) / len(self.quantiles)
        within = np.interp(share, places, self.quantiles)
        below = self.quantiles[0] + np.log(share / places[0]) / self.steepness
        return np.where(share < places[0], below, within)


@dataclass(frozen=True)
class Expected:
    """What gaps mean in one gallery of n people."""

    absent: Floats  # gaps of queries whose person is not there, sorted
    present: Floats  # and there once
    logit: tuple[float, float]  # (a, b): log-odds of presence a + b gap, at even prior odds
    tolerance: Floats  # see `tolerated`, as present

    @classmethod
    def of(cls, strangers: Strangers, n: int, fit: tuple[float, float] = (1.0, 0.0)) -> Expected:
        """Simulate a gallery of n people whose strangers are scaled and moved by `fit`."""
        near, mates = strangers.draw(n)
        near = fit[0] * near + fit[1]
        gaps = gap(np.sort(np.column_stack([near, mates]), axis=1))
        absent, order = np.sort(gap(near)), np.argsort(gaps)
        present, right = gaps[order], (mates < near[:, 0])[order]
        found = cls(absent, present, _logistic(absent[::4], present[::4]), gaps)
        # What comes of accepting everybody with at least so large a gap, for each of the gaps.
        accepted = strangers.people * np.arange(len(gaps), 0, -1) / len(gaps)
        correct = strangers.people * np.cumsum(right[::-1])[::-1] / len(gaps)
        false = strangers.people * found.chance(present)
        tolerance = (errors_allowed(correct) - (accepted - correct)) / false
        return replace(found, tolerance=np.maximum.accumulate(tolerance))

    def chance(self, gaps: Floats) -> Floats:
        """Return how often an absent person's gap is at least so large."""
        below = np.searchsorted(self.absent, gaps, "left")
        return np.asarray((len(self.absent) - below + 1.0) / (len(self.absent) + 1.0))

    def miss(self, gaps: Floats) -> Floats:
        """Return how often a present person's gap is at most so large."""
        below = np.searchsorted(self.present, gaps, "right")
        return np.asarray((below + 1.0) / (len(self.present) + 1.0))

    def log_odds(self, gaps: Floats) -> Floats:
        """Return the log-odds of presence at even prior odds."""
        return self.logit[0] + self.logit[1] * gaps

    def tolerated(self, gaps: Floats) -> Floats:
        """Return how common absence may be for people with such gaps to be called found.

        Up to so many people who are not there, for each who is, the first unit is right in 80% of
        these answers, with an allowance for what so few held-out people can tell. Negative where
        they cannot tell at all.
        """
        return np.append(-1.0, self.tolerance)[np.searchsorted(self.present, gaps, "right")]


def errors_allowed(correct: ArrayLike) -> Floats:
    """Return how many errors beside so many correct answers still show a precision above 80%.

    A one-sided score test (Wilson, 1927): the precision seen is `_SURE` standard errors higher.
    Negative where there are too few answers to show it at all.
    """
    width = _SURE * np.sqrt(PRECISION * (1.0 - PRECISION))
    root = np.sqrt(width**2 + 4.0 * PRECISION * np.asarray(correct, float)) - width
    return np.asarray((root / (2.0 * PRECISION)) ** 2 - correct)


def _spacing(near: Floats) -> float:
    return float((near[:, 1:].mean(axis=1) - near[:, 0]).mean())


def _logistic(absent: Floats, present: Floats, steps: int = 25) -> tuple[float, float]:
    """Tell the two apart by one number: logistic regression by Newton's method."""
    x = np.concatenate([absent, present])
    centre, scale = float(x.mean()), float(x.std()) or 1.0
    X = np.column_stack([np.ones_like(x), (x - centre) / scale])
    y = np.repeat([0.0, 1.0], [len(absent), len(present)])
    w = np.zeros(2)
    for _ in range(steps):
        p = logistic(np.clip(X @ w, -30.0, 30.0))
        penalty = np.array([0.0, 1.0])  # matters where the two are told apart completely
        hessian = X.T @ (X * (p * (1 - p))[:, None]) + np.diag(penalty) + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, X.T @ (y - p) - penalty * w)
        w = w + step
        if np.abs(step).max() < 1e-9:
            break
    return float(w[0] - w[1] * centre / scale), float(w[1] / scale)


def logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)) without overflow; SciPy's takes longer to import than a search."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
