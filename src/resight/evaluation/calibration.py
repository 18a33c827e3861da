"""From distances to probabilities, and to the decision that a person is not in the gallery.

Everything is learned from rankings of people the metric was not fitted on. Distances are used in
units of the median distance between the query and the gallery, z = d / median(d), because a
metric fitted on more people has another scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from resight.errors import InputError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MIN_PEOPLE = 20
_TAIL = 0.02  # part of the distances to strangers that is taken as their lower tail


@dataclass(frozen=True)
class HeldOut:
    """A ranking of people the metric was not fitted on.

    Attributes
    ----------
    distances : array (n_queries, n_gallery)
    same : bool array (n_queries, n_gallery)
        Whether query and gallery sighting show one person.
    """

    distances: Floats
    same: Bools


@dataclass
class Calibration:
    """What distances of one model mean.

    Attributes
    ----------
    pair : (a, b)
        P(same person | distance d) = 1 / (1 + exp(a + b log d)).
    choice : (a, b)
        P(gallery sighting i is the query's person | it is in the gallery) is proportional to
        exp(-a z_i - b log z_i).
    tail : (q, z_q, k)
        Below z_q the distances to strangers follow P(z < t) = q (t / z_q)^k.
    n_people : int
        People it was learned from.
    """

    pair: tuple[float, float]
    choice: tuple[float, float]
    tail: tuple[float, float, float]
    n_people: int

    @classmethod
    def fit(cls, held_out: Sequence[HeldOut], n_people: int) -> Calibration:
        """Learn from rankings of held-out people; fewer than 20 are refused."""
        if n_people < MIN_PEOPLE:
            raise InputError(
                f"calibration needs at least {MIN_PEOPLE} held-out people, there are {n_people}; "
                f"label {MIN_PEOPLE - n_people} more people seen by two cameras"
            )
        return cls(_fit_pair(held_out), _fit_choice(held_out), _fit_tail(held_out), n_people)

    def probability(self, distances: ArrayLike) -> Floats:
        """Probability that two sightings show one person, by their distance alone.

        As many pairs of one person as of two are assumed; a search over a gallery uses
        `match_probabilities`, which knows the other candidates.
        """
        a, b = self.pair
        return np.asarray(expit(-(a + b * np.log(_positive(distances)))))

    def match_probabilities(self, distances: ArrayLike) -> Floats:
        """Probability of each gallery sighting to be the query's person, rows add up to 1.

        It assumes that the person is in the gallery, once; see `accepts` for the other case.
        """
        a, b = self.choice
        z = _relative(distances)
        utility = -a * z - b * np.log(z)
        return np.asarray(np.exp(utility - logsumexp(utility, axis=1, keepdims=True)))

    def threshold(self, n_gallery: int, false_accepts: float) -> float:
        """Return the z below which a first match is accepted.

        Of queries whose person is not among `n_gallery` sightings, the part `false_accepts`
        has its nearest stranger below: 1 - (1 - P(z < t))^n = false_accepts.
        """
        if not 0 < false_accepts < 1:
            raise InputError(
                f"false_accepts={false_accepts:g}; give a rate between 0 and 1, such as 0.1"
            )
        q, z_q, k = self.tail
        single = -np.expm1(np.log1p(-false_accepts) / n_gallery)
        return float(z_q * (single / q) ** (1.0 / k))

    def accepts(self, distances: ArrayLike, false_accepts: float = 0.1) -> Bools:
        """Tell for each query whether its person seems to be in the gallery at all."""
        z = _relative(distances)
        return np.asarray(z.min(axis=1) < self.threshold(z.shape[1], false_accepts))


def _fit_pair(held_out: Sequence[HeldOut]) -> tuple[float, float]:
    logs = np.concatenate([np.log(_positive(one.distances)).ravel() for one in held_out])
    same = np.concatenate([one.same.ravel() for one in held_out])
    weights = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
    sign = np.where(same, 1.0, -1.0)
    centre = float(np.average(logs, weights=weights))

    def loss(parameters: Floats) -> float:
        margin = -sign * (parameters[0] + parameters[1] * (logs - centre))
        return float(weights @ np.logaddexp(0.0, -margin))

    a, b = minimize(loss, [0.0, 1.0], method="L-BFGS-B").x
    return float(a - b * centre), float(b)


def _fit_choice(held_out: Sequence[HeldOut]) -> tuple[float, float]:
    """Maximise the likelihood of the right gallery sightings (a conditional logit)."""
    parts = [(_relative(one.distances), one.same) for one in held_out]
    asked = [(z[same.any(axis=1)], same[same.any(axis=1)]) for z, same in parts]

    def loss(parameters: Floats) -> float:
        total, count = 0.0, 0
        for z, same in asked:
            utility = -parameters[0] * z - parameters[1] * np.log(z)
            right = logsumexp(np.where(same, utility, -np.inf), axis=1)
            total += float((logsumexp(utility, axis=1) - right).sum())
            count += len(z)
        return total / count

    a, b = minimize(loss, [5.0, 1.0], method="Nelder-Mead").x
    return float(a), float(b)


def _fit_tail(held_out: Sequence[HeldOut]) -> tuple[float, float, float]:
    """Hill's estimate of the lower tail of the distances between different people."""
    strangers = np.sort(np.concatenate([_relative(one.distances)[~one.same] for one in held_out]))
    n_tail = max(10, int(_TAIL * len(strangers)))
    z_q = float(strangers[n_tail])
    k = 1.0 / float(np.mean(np.log(z_q / strangers[:n_tail])))
    return n_tail / len(strangers), z_q, k


def _relative(distances: ArrayLike) -> Floats:
    d = _positive(np.atleast_2d(np.asarray(distances, dtype=np.float64)))
    relative: Floats = d / np.median(d, axis=1, keepdims=True)
    return relative


def _positive(distances: ArrayLike) -> Floats:
    d = np.asarray(distances, dtype=np.float64)
    return np.maximum(d, np.finfo(np.float64).tiny)


def expected_calibration_error(
    probabilities: ArrayLike, right: ArrayLike, n_bins: int = 10
) -> float:
    """Mean gap between stated probability and rate of success, over equally filled bins."""
    p, hit = np.asarray(probabilities, float), np.asarray(right, float)
    order = np.argsort(p, kind="stable")
    gaps = [
        abs(p[part].mean() - hit[part].mean()) * len(part)
        for part in np.array_split(order, n_bins)
        if len(part)
    ]
    return float(sum(gaps) / len(p))


def log_loss(probabilities: ArrayLike, right: ArrayLike) -> float:
    """Mean negative log-likelihood of what happened."""
    p = np.clip(np.asarray(probabilities, float), 1e-12, 1 - 1e-12)
    hit = np.asarray(right, bool)
    return float(-np.mean(np.where(hit, np.log(p), np.log1p(-p))))
