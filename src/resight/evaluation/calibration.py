"""From distances to probabilities, and to the decision that a person is not in the gallery.

Everything is learned from rankings of people the metric was not fitted on. Distances are used in
units of the median distance between the query and the gallery, z = d / median(d), because a
metric fitted on more people has another scale and some queries are far from everybody.

Two models share these z. Let f1 and f0 be the densities of z for the query's person and for a
stranger. If the person is in the gallery once, Bayes' rule gives sighting i the probability
r(z_i) / sum_j r(z_j) with r = f1 / f0, whatever the size of the gallery: the strangers' own
distances stand in the sum. For distances like sums of squares (Gamma densities) log r is linear
in z and log z. The decision needs the lower tail of f0 far below what was seen, so it has a
model of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, gammainc, gammaln, logsumexp

from resight.errors import InputError
from resight.saving import SavableMixin

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MIN_PEOPLE = 20
FALSE_ACCEPTS = 0.1
_TAIL = 0.1  # part of the distances to strangers that is taken as their lower tail
_PRIOR = 10.0  # standard deviation of the prior of `choice`; it matters for few people only


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
class Calibration(SavableMixin):
    """What distances of one model mean.

    Attributes
    ----------
    pair : (a, b)
        P(same person | distance d) = 1 / (1 + exp(a + b log d)).
    choice : (a, b, c)
        log r(z) = c - a z - b log z, how much likelier z is for the query's person than for a
        stranger.
    tail : (q, z_q, k, l)
        Below z_q the distances to strangers follow P(z < t) = q g(k, l t) / g(k, l z_q), with g
        the lower incomplete Gamma function.
    spread : float
        How much the number of close strangers varies between queries: variance of that number in
        units of its squared mean, beyond what chance gives.
    n_people : int
        People it was learned from.
    """

    state_version: ClassVar[int] = 1

    pair: tuple[float, float]
    choice: tuple[float, float, float]
    tail: tuple[float, float, float, float]
    spread: float
    n_people: int

    @classmethod
    def fit(cls, held_out: Sequence[HeldOut], n_people: int) -> Calibration:
        """Learn from rankings of held-out people; fewer than 20 are refused."""
        if n_people < MIN_PEOPLE:
            raise InputError(too_few(n_people))
        tail = _fit_tail(held_out)
        return cls(
            _fit_pair(held_out), _fit_choice(held_out), tail, _fit_spread(held_out, tail), n_people
        )

    def continued(self, fewer: Calibration, step: float) -> Calibration:
        """Continue the trend of `choice` to a metric that learns from more people.

        Parameters
        ----------
        fewer : Calibration
            Learned like this one, from rankings of the same people by metrics that learned from
            fewer people.
        step : float
            How far to go on, in units of the step from `fewer` to this one.
        """
        choice = np.array(self.choice) + step * np.subtract(self.choice, fewer.choice)
        return replace(self, choice=(float(choice[0]), float(choice[1]), float(choice[2])))

    def probability(self, distances: ArrayLike) -> Floats:
        """Probability that two sightings show one person, by their distance alone.

        As many pairs of one person as of two are assumed; a search over a gallery uses
        `match_probabilities`, which knows the other candidates.
        """
        a, b = self.pair
        return np.asarray(expit(-(a + b * np.log(_positive(distances)))))

    def log_ratios(self, z: ArrayLike) -> Floats:
        """Return log r(z): evidence for the query's person of relative distances."""
        a, b, c = self.choice
        relative = _positive(z)
        return np.asarray(c - a * relative - b * np.log(relative))

    def match_probabilities(self, distances: ArrayLike, present: float = 1.0) -> Floats:
        """Probability of each gallery sighting to be the query's person.

        Parameters
        ----------
        distances : array (n_queries, n_gallery)
            One gallery for all queries, in which nobody is seen twice.
        present : float
            How probable it was, before looking, that the person is in the gallery. With 1 each
            row adds up to 1.
        """
        return posterior(self.log_ratios(relative_distances(distances)), present)

    def threshold(self, n_gallery: int, false_accepts: float = FALSE_ACCEPTS) -> float:
        """Return the z below which a first match is accepted.

        Of queries whose person is not among `n_gallery` sightings, the part `false_accepts` has
        its nearest stranger below. With a Gamma-distributed number of close strangers
        (variance `spread`) P(none is below t) = (1 + spread n P(z < t))^(-1/spread).
        """
        if not 0 < false_accepts < 1:
            raise InputError(
                f"false_accepts={false_accepts:g}; give a rate between 0 and 1, such as 0.1"
            )
        nobody = -np.log1p(-false_accepts)
        expected = np.expm1(self.spread * nobody) / self.spread if self.spread > 0 else nobody
        return self._tail_quantile(float(expected) / n_gallery)

    def accepts(self, distances: ArrayLike, false_accepts: float = FALSE_ACCEPTS) -> Bools:
        """Tell for each query whether its person seems to be in the gallery at all."""
        z = relative_distances(distances)
        return np.asarray(z.min(axis=1) < self.threshold(z.shape[1], false_accepts))

    def _tail_quantile(self, probability: float) -> float:
        """Return t with P(z < t) = probability; beyond the tail, its end."""
        q, z_q, k, rate = self.tail
        if probability >= q:
            return z_q
        if rate * z_q < 1e-6:
            return float(z_q * (probability / q) ** (1.0 / k))
        wanted = probability / q * gammainc(k, rate * z_q)
        low = z_q * (probability / q) ** (1.0 / k) * np.exp(-rate * z_q / k) / 2
        return float(brentq(lambda t: gammainc(k, rate * t) - wanted, low, z_q))


def too_few(n_people: int) -> str:
    """Say how many people are missing for a calibration."""
    return (
        f"calibration needs at least {MIN_PEOPLE} people seen by two cameras, there "
        f"are {n_people}; label {MIN_PEOPLE - n_people} more"
    )


def relative_distances(distances: ArrayLike) -> Floats:
    """Return z = d / median of its row, (n_queries, n_gallery)."""
    d = _positive(np.atleast_2d(np.asarray(distances, dtype=np.float64)))
    relative: Floats = d / np.median(d, axis=1, keepdims=True)
    return relative


def posterior(log_ratios: Floats, present: float) -> Floats:
    """Return the probability of each sighting of a row: present r_i / n over all that can be."""
    if not 0 < present <= 1:
        raise InputError(f"present={present:g}; give a probability above 0, up to 1")
    weighted = log_ratios + np.log(present / log_ratios.shape[1])
    total = logsumexp(weighted, axis=1, keepdims=True)
    if present < 1:
        total = np.logaddexp(total, np.log1p(-present))
    return np.asarray(np.exp(weighted - total))


def _fit_pair(held_out: Sequence[HeldOut]) -> tuple[float, float]:
    logs = np.concatenate([np.log(_positive(one.distances)).ravel() for one in held_out])
    same = np.concatenate([one.same.ravel() for one in held_out])
    weights = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
    sign = np.where(same, 1.0, -1.0)
    centre = float(np.average(logs, weights=weights))

    def loss(parameters: Floats) -> float:
        margin = -sign * (parameters[0] + parameters[1] * (logs - centre))
        # the prior matters where one threshold separates all pairs
        return float(weights @ np.logaddexp(0.0, -margin)) + 1e-6 * float(parameters @ parameters)

    a, b = minimize(loss, [0.0, 1.0], method="L-BFGS-B").x
    return float(a - b * centre), float(b)


def _fit_choice(held_out: Sequence[HeldOut]) -> tuple[float, float, float]:
    """Maximise the likelihood of the right sightings (a conditional logit), then that of presence.

    The second step finds the constant: every query is asked once with its person in the gallery
    and once without, and the two are told apart by the mean of r over the gallery.
    """
    z, same, exists = _stacked(held_out)
    features = np.stack([-z, -np.log(z)])  # (2, n_queries, n_gallery)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        utility = np.where(exists, np.tensordot(parameters, features, 1), -np.inf)
        chances, total = _softmax(utility)
        right, total_right = _softmax(np.where(same, utility, -np.inf))
        value = (
            float((total - total_right).sum()) + 0.5 * float(parameters @ parameters) / _PRIOR**2
        )
        slope = np.einsum("kqg,qg->k", features, chances - right) + parameters / _PRIOR**2
        return value, slope

    best = minimize(loss, [5.0, 1.0], jac=True, method="BFGS").x
    utility = np.where(exists, np.tensordot(best, features, 1), -np.inf)
    log_with, log_without = _mean_ratios(utility, same, exists)

    def slope(c: float) -> float:  # of the log-likelihood; falls with c
        return float(expit(-(c + log_with)).mean() - expit(c + log_without).mean())

    low, high = -log_with.max() - 50.0, -log_without.min() + 50.0
    return float(best[0]), float(best[1]), float(brentq(slope, low, high))


def _stacked(held_out: Sequence[HeldOut]) -> tuple[Floats, Bools, Bools]:
    """All queries whose person is there: z, same, and which places of the galleries exist."""
    n = max(one.same.shape[1] for one in held_out)
    parts = []
    for one in held_out:
        has, missing = one.same.any(axis=1), n - one.same.shape[1]
        z, same = _relative_to_strangers(one)[has], one.same[has]
        widen = ((0, 0), (0, missing))
        exists = np.pad(np.ones_like(same), widen)
        parts.append((np.pad(z, widen, constant_values=1.0), np.pad(same, widen), exists))
    z, same, exists = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return z, same, exists


def _softmax(utility: Floats) -> tuple[Floats, Floats]:
    """Return chances and the log of what they were divided by, for each row."""
    top = utility.max(axis=1, keepdims=True)
    weights = np.exp(utility - top)
    total = weights.sum(axis=1, keepdims=True)
    return weights / total, (np.log(total) + top)[:, 0]


def _mean_ratios(utility: Floats, same: Bools, exists: Bools) -> tuple[Floats, Floats]:
    """Log of the mean of r over the gallery, with the query's person in it and without."""
    _, with_person = _softmax(utility)
    _, without = _softmax(np.where(same, -np.inf, utility))
    n, n_strangers = exists.sum(axis=1), (exists & ~same).sum(axis=1)
    return with_person - np.log(n), without - np.log(n_strangers)


def _relative_to_strangers(one: HeldOut) -> Floats:
    """Return z as a large gallery would give it, from the few people of a fold.

    A median of few distances is noisy, and the noise would be taken for close strangers. In
    logarithms, the mean over n strangers takes its place: what is left of a stranger who is
    among them has the variance 1 - 1/n, which is put right exactly; the step from mean to median
    is taken once for the whole fold.
    """
    logs = np.log(_positive(one.distances))
    n = (~one.same).sum(axis=1, keepdims=True)  # (n_queries, 1)
    means = np.where(one.same, 0.0, logs).sum(axis=1, keepdims=True) / n
    rest = logs - means
    rest = np.where(one.same, rest, rest * np.sqrt(n / (n - 1.0)))
    relative: Floats = np.exp(rest - np.median(rest[~one.same]))
    return relative


def _fit_tail(held_out: Sequence[HeldOut]) -> tuple[float, float, float, float]:
    """Fit a Gamma density, cut off at z_q, to the closest strangers by maximum likelihood.

    Notes
    -----
    Fixing the rate by the median of 1 would halve the variance of the far tail, but on sums of
    unequally weighted squares it gave half the stated rate; the free rate holds there.
    """
    z = np.sort(np.concatenate([_relative_to_strangers(one)[~one.same] for one in held_out]))
    n_tail = min(max(10, int(_TAIL * len(z))), len(z) - 1)
    z_q, below = float(z[n_tail]), z[:n_tail]
    mean_log, mean = float(np.log(below / z_q).mean()), float((below / z_q).mean())

    def loss(parameters: Floats) -> float:
        k, rate = np.exp(parameters[0]), np.exp(parameters[1])  # rate in units of 1 / z_q
        cut = gammaln(k) + np.log(gammainc(k, rate)) - k * np.log(rate)
        return float(cut - (k - 1.0) * mean_log + rate * mean)

    start = [np.log(-1.0 / mean_log), 0.0]
    bounds = [(-3.0, 5.0), (-9.0, 4.0)]
    log_k, log_rate = minimize(loss, start, method="L-BFGS-B", bounds=bounds).x
    return n_tail / len(z), z_q, float(np.exp(log_k)), float(np.exp(log_rate) / z_q)


def _fit_spread(held_out: Sequence[HeldOut], tail: tuple[float, float, float, float]) -> float:
    """Moment estimate from the numbers of close strangers, which chance alone makes Poisson."""
    q, z_q, _, _ = tail
    excess, squares = 0.0, 0.0
    for one in held_out:
        expected = q * (~one.same).sum(axis=1)  # (n_queries,)
        seen = ((_relative_to_strangers(one) < z_q) & ~one.same).sum(axis=1)
        excess += float(((seen - expected) ** 2 - expected * (1 - q)).sum())
        squares += float((expected**2).sum())
    return max(0.0, excess / squares)


def _positive(distances: ArrayLike) -> Floats:
    d = np.asarray(distances, dtype=np.float64)
    return np.maximum(d, np.finfo(np.float64).tiny)
