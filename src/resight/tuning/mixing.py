"""Weights of distances that are added, learned from people who were held out.

With distances d_b of several metrics, the gallery sighting g of a query q is taken for the match
with a probability proportional to exp(-sum_b w_b d_b(q, g)). The weights, none negative, maximise
the likelihood of the true matches minus a penalty for leaving a default mixture. The likelihood
grows with the number of people and the penalty falls, so few people leave the default alone. Where
nothing is learned the weights have a closed form (`separating_weights`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize, nnls

from resight.learners._base import Floats

Rows = NDArray[np.intp]
STRANGERS = 300
"""People are looked for as if among so many strangers: folds hold out only a few, among whom any
mixture finds them, and searches meet hundreds."""

UNCORRELATED = 0.25
"""Part of the correlation between descriptors that is not believed."""

_LEFT_OUT = 10  # groups of people that are left out one after the other


@dataclass(frozen=True)
class Held:
    """The sightings held out by one fold, and which of them may be compared."""

    same: NDArray[np.bool_]  # (n, n): of different cameras and the same person
    other: NDArray[np.bool_]  # (n, n): of different cameras and different people
    persons: Rows  # (n,)

    @classmethod
    def of(cls, persons: NDArray[Any], cameras: NDArray[Any] | None) -> Held:
        """Compare every sighting with those of all other cameras (without: with all others)."""
        views = np.arange(len(persons)) if cameras is None else cameras
        across = views[:, None] != views[None, :]
        same = persons[:, None] == persons[None, :]
        return cls(across & same, across & ~same, np.asarray(persons))

    @property
    def asked(self) -> Rows:
        """Rows that have both a match and somebody else to be taken for."""
        return np.flatnonzero(self.same.any(axis=1) & self.other.any(axis=1))

    def spread(self, distances: NDArray[Any]) -> float:
        """Return the standard deviation of the distances between different people."""
        return float(distances[self.other].std()) if self.other.any() else 0.0

    def gaps(self, distances: NDArray[Any]) -> Floats:
        """Return for each person how much nearer matches are than strangers usually are."""
        rows = self.asked
        same, own = self.same[rows], distances[rows]
        gaps = _usual(own, self.other[rows]) - (own * same).sum(axis=1) / same.sum(axis=1)
        persons = np.unique(self.persons[rows], return_inverse=True)[1]
        of_people: Floats = np.bincount(persons, gaps) / np.bincount(persons)
        return of_people


def separating_weights(held: Held, distances: NDArray[Any]) -> tuple[Floats, float]:
    """Weights, none negative, of distances (B, n, n) that tell matches from strangers best.

    Fisher's criterion: how far a query's match stands before its strangers, in standard deviations
    of these, which ten people tell although all of them are found first among ten. Returns the
    square of that gap as well. Every person counts once.
    """
    other = held.other[held.asked]
    gap = np.array([held.gaps(one).mean() for one in distances])
    centred = distances[:, held.asked] - _usual(distances[:, held.asked], other)[:, :, None]
    strangers = centred[:, other]  # (B, pairs)
    spreads = np.maximum(strangers.std(axis=1), 1e-9)
    correlations = np.atleast_2d(strangers @ strangers.T / strangers.shape[1])
    correlations *= (1.0 - UNCORRELATED) / np.outer(spreads, spreads)
    np.fill_diagonal(correlations, 1.0)
    root = cholesky(correlations, lower=True)
    weights = nnls(root.T, solve_triangular(root, gap / spreads, lower=True))[0]
    return weights / spreads, float(weights @ (gap / spreads))


def trusting_weights(
    held: Held, distances: NDArray[Any], networks: Sequence[bool]
) -> tuple[Floats, float]:
    """Weights that separate best, of networks alone unless the others help people left out.

    A network has learned to tell people apart, so others must help by more than a standard error.
    """
    if not len(held.asked):
        return np.ones(len(distances)), 0.0
    trusted = np.asarray(networks)
    weights, separation = separating_weights(held, distances)
    if trusted.any() and not trusted.all():
        gain = _left_out_gaps(held, distances) - _left_out_gaps(held, distances[trusted])
        if gain.mean() <= gain.std() / np.sqrt(len(gain)):
            weights = np.zeros(len(distances))
            weights[trusted], separation = separating_weights(held, distances[trusted])
    return weights if weights.any() else np.ones(len(distances)), separation


def _left_out_gaps(held: Held, distances: NDArray[Any]) -> Floats:
    """Gap of each person, in spreads between strangers, under weights from other people."""
    people = np.unique(held.persons[held.asked])
    gaps = np.empty(len(people))
    for start in range(_LEFT_OUT):
        some = people[start::_LEFT_OUT]
        rows = np.flatnonzero(~np.isin(held.persons, some))
        inside = np.ix_(rows, rows)
        rest = Held(held.same[inside], held.other[inside], held.persons[rows])
        weights = np.ones(len(distances))
        if len(rest.asked):
            weights = separating_weights(rest, distances[:, rows][:, :, rows])[0]
        total = np.tensordot(weights, distances, 1)
        gaps[start::_LEFT_OUT] = held.gaps(total)[start::_LEFT_OUT] / max(held.spread(total), 1e-9)
    return gaps


def _usual(rows: NDArray[Any], other: NDArray[np.bool_]) -> Floats:
    """Mean distance of each row to its strangers: only what is nearer than that ranks a match."""
    means: Floats = (rows * other).sum(axis=-1) / other.sum(axis=-1)
    return means


class Likelihood:
    """Negative log-likelihood of true matches as a function of weights.

    For each fold `distances` are those of B metrics, of comparable spread, (B, n, n).
    """

    def __init__(self, folds: list[Held], distances: Sequence[NDArray[Any]]) -> None:
        self._folds = []
        counts = np.bincount(np.concatenate([one.persons[one.asked] for one in folds]))
        for held, of_fold in zip(folds, distances, strict=True):
            rows = held.asked
            allowed = (held.same | held.other)[rows]
            parts = np.asarray(of_fold[:, rows], np.float32)
            other = held.other[rows]
            crowd = np.where(other, np.log(STRANGERS / other.sum(axis=1, keepdims=True)), 0.0)
            # Every person counts once, however often they were asked for.
            share = 1.0 / counts[held.persons[rows]]
            self._folds.append((parts, held.same[rows], allowed, crowd, share))
        self.people = int((counts > 0).sum())

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient."""
        value, gradient = 0.0, np.zeros(len(weights))
        for parts, same, allowed, crowd, share in self._folds:
            logits = -np.tensordot(weights.astype(np.float32), parts, 1).astype(np.float64)
            everyone, match = _softmax(logits + crowd, allowed), _softmax(logits, same)
            value += float(share @ (everyone[0] - match[0]))
            pull = (share[:, None] * (match[1] - everyone[1])).astype(np.float32)
            gradient += np.tensordot(parts, pull, 2)
        return value, gradient

    def fit(self, default: Floats, strength: float) -> Floats:
        """Return the weights; leaving a share of the default by x costs strength x^2 / 2."""
        scale = self._scale(default)

        def penalised(shares: Floats) -> tuple[float, Floats]:
            value, gradient = self(scale * shares)
            away = shares - default
            return value + 0.5 * strength * float(away @ away), scale * gradient + strength * away

        bounds = [(0.0, None)] * len(default)
        found = minimize(penalised, default, jac=True, method="L-BFGS-B", bounds=bounds)
        return np.asarray(scale * found.x)

    def _scale(self, default: Floats) -> float:
        """Return the multiple of the default mixture that explains the matches best."""

        def along(exponent: Floats) -> tuple[float, Floats]:
            scale = float(np.exp(exponent[0]))
            value, gradient = self(scale * default)
            return value, np.array([scale * float(gradient @ default)])

        found = minimize(along, np.zeros(1), jac=True, method="L-BFGS-B", bounds=[(-3.0, 3.0)])
        return float(np.exp(found.x[0]))


def _softmax(logits: Floats, allowed: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Logarithm of the sum of exponentials over what is allowed, and the shares in it."""
    inside = np.where(allowed, logits, -np.inf)
    top = inside.max(axis=1, keepdims=True)
    powers = np.exp(inside - top)
    total = powers.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], powers / total
