"""Weights of distances that are added, learned from people who were held out.

With distances d_b of several metrics, the gallery sighting g of a query q is taken for the match
with a probability proportional to exp(-sum_b w_b d_b(q, g)). The weights, none negative, maximise
the likelihood of the true matches minus a penalty for leaving a default mixture. The likelihood
grows with the number of people and the penalty falls, so few people leave the default alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from resight.evaluation.metrics import average_precisions
from resight.learners._base import Floats
from resight.tuning.cross_validation import directions
from resight.tuning.fold_metrics import codes_of
from resight.tuning.gram import Rows


class Comparisons:
    """Some sightings, such as those that one fold holds out, and which may be compared.

    That is every sighting with those of all other cameras; without cameras, with all others.
    """

    def __init__(self, persons: NDArray[Any], cameras: NDArray[Any] | None) -> None:
        views = np.arange(len(persons)) if cameras is None else cameras
        across, same = views[:, None] != views[None, :], persons[:, None] == persons[None, :]
        self.same = across & same  # (n, n): of different cameras and the same person
        self.other = across & ~same  # (n, n): of different cameras and different people
        self.persons = np.asarray(persons)  # (n,)
        self._directions = None if cameras is None else list(directions(persons, cameras))

    @property
    def asked(self) -> Rows:
        """Rows that have both a match and somebody else to be taken for."""
        return np.flatnonzero(self.same.any(axis=1) & self.other.any(axis=1))

    def spread(self, distances: NDArray[Any]) -> float:
        """Return the standard deviation of the distances between different people."""
        return float(distances[self.other].std()) if self.other.any() else 0.0

    def gaps(self, distances: NDArray[Any]) -> Floats:
        """Return for each person how much nearer matches are than strangers, in their spreads.

        Ten people tell this apart, although any metric finds most of them first among ten.
        """
        rows = self.asked
        same, other, own = self.same[rows], self.other[rows], distances[rows]
        usual = (own * other).sum(axis=1) / other.sum(axis=1)
        gaps = usual - (own * same).sum(axis=1) / same.sum(axis=1)
        persons = np.unique(self.persons[rows], return_inverse=True)[1]
        of_people: Floats = np.bincount(persons, gaps) / np.bincount(persons)
        return of_people / max(self.spread(distances), 1e-9)

    def precisions(self, distances: Floats) -> Floats:
        """Mean average precision of each person, in sorted order, over all their queries."""
        codes = codes_of(self.persons)
        sums, counts = np.zeros((2, codes.max() + 1))
        if self._directions is None:
            own = np.arange(len(codes))  # a sighting is not looked for in itself
            ap = average_precisions(distances, codes, codes, query_cameras=own, gallery_cameras=own)
            return np.bincount(codes, ap) / np.bincount(codes)
        for query, gallery in self._directions:
            part = distances[np.ix_(query, gallery)]
            right = codes[query][:, None] == codes[gallery]
            if right.sum() == len(query) and np.isfinite(part).all():  # one for each: 1 / its rank
                found = 1.0 / (part <= part[right][:, None]).sum(axis=1)
            else:
                found = average_precisions(part, codes[query], codes[gallery])
            sums += np.bincount(codes[query], found, len(sums))
            counts += np.bincount(codes[query], minlength=len(counts))
        return sums / counts


class Likelihood:
    """Negative log-likelihood of true matches as a function of weights.

    For each fold `distances` are those of B metrics, of comparable spread, (B, n, n).
    """

    def __init__(self, folds: list[Comparisons], distances: Sequence[NDArray[Any]]) -> None:
        self._folds = []
        counts = np.bincount(np.concatenate([one.persons[one.asked] for one in folds]))
        for held, of_fold in zip(folds, distances, strict=True):
            rows = held.asked
            allowed = (held.same | held.other)[rows]
            parts = np.asarray(of_fold[:, rows], np.float32).reshape(len(of_fold), -1)
            # Every person counts once, however often they were asked for.
            self._folds.append((parts, held.same[rows], allowed, 1.0 / counts[held.persons[rows]]))
        self.people = int((counts > 0).sum())

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient."""
        value, gradient = 0.0, np.zeros(len(weights))
        for parts, same, allowed, share in self._folds:
            logits = -(weights.astype(np.float32) @ parts).astype(np.float64).reshape(same.shape)
            everyone, match = _softmax(logits, allowed), _softmax(logits, same)
            value += float(share @ (everyone[0] - match[0]))
            pull = (share[:, None] * (match[1] - everyone[1])).astype(np.float32)
            gradient += parts @ pull.ravel()
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
