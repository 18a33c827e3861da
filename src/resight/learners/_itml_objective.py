"""The problem of ITML with its slack solved for: a smooth function of the metric alone.

ITML asks for the metric A nearest to A_0 = I in the LogDet divergence, and for slack bounds xi
near the given ones xi_0,

    min tr A - log det A + gamma sum_c (xi_c / xi_0c - log(xi_c / xi_0c))
    with d_A(c) <= xi_c for similar and d_A(c) >= xi_c for dissimilar pairs c.

For a given A the best slack is known: xi = xi_0 where the constraint holds there, xi = d_A
elsewhere. What remains has no constraint, with r = d_A(c) / xi_0c,

    f(A) = tr A - log det A - d + gamma sum_{c violated at xi_0} (r - log r - 1),

and its stationary point is A^-1 = I + sum_c delta_c lambda_c x_c x_c^T with the dual variables

    delta_c lambda_c = gamma (1/xi_0c - 1/d_A(c)) where violated, 0 elsewhere,

delta = 1 for similar, -1 for dissimilar pairs: the optimality conditions of the problem above.
The published cyclic Bregman projections climb its dual one pair at a time to the same point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from resight.learners._base import Floats
from resight.learners._pair_blocks import PairBlock, laplacian_times

#: Pairs closer than this fraction of the mean squared distance coincide: no metric parts them.
COINCIDENT = 1e-10


@dataclass(frozen=True)
class Bounds:
    """Wanted squared distances: similar pairs at most ``upper``, dissimilar at least ``lower``."""

    upper: float
    lower: float


def percentile_bounds(
    blocks: list[PairBlock], Z: Floats, percentiles: tuple[float, float]
) -> Bounds:
    """Percentiles of the squared distances of all pairs that do not coincide."""
    kept = [block.distances(Z)[block.distinct(Z, COINCIDENT)] for block in blocks]
    upper, lower = np.percentile(np.concatenate(kept), percentiles)
    return Bounds(float(upper), float(lower))


class LogDetObjective:
    """f of this module for A = L^T L: each pair of Z (N, d) is a constraint, `bounds` are xi_0."""

    def __init__(self, blocks: list[PairBlock], Z: Floats, bounds: Bounds, gamma: float) -> None:
        self.blocks, self.Z = blocks, Z
        self.wanted = [np.where(b.similar, bounds.upper, bounds.lower) for b in blocks]
        self.gammas = [gamma * b.times * b.distinct(Z, COINCIDENT) for b in blocks]

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """Return f and its gradient by L, for invertible L of shape (d, d)."""
        d = len(L)
        E = self.Z @ L.T  # (N, d)
        ratios = [
            self._violated_ratios(b, w, E) for b, w in zip(self.blocks, self.wanted, strict=True)
        ]
        slack = sum(
            float((gamma * (r - np.log(r) - 1.0)).sum())
            for gamma, r in zip(self.gammas, ratios, strict=True)
        )
        duals = [
            gamma * (1.0 - 1.0 / r) / wanted
            for gamma, r, wanted in zip(self.gammas, ratios, self.wanted, strict=True)
        ]  # delta lambda
        inverse, log_det = _inverse_and_log_det(L)
        value = float((L * L).sum()) - 2.0 * log_det - d + slack
        # 2 L (I + X^T Laplacian(delta lambda) X - A^-1), with L A^-1 = L^-T
        gradient: Floats = 2.0 * (L + laplacian_times(self.blocks, duals, E).T @ self.Z - inverse.T)
        return value, gradient

    @staticmethod
    def _violated_ratios(block: PairBlock, wanted: Floats, E: Floats) -> Floats:
        """d_A / xi_0 where the bound is violated, 1 (no loss, no dual variable) elsewhere."""
        r = np.maximum(block.distances(E) / wanted, np.finfo(np.float64).tiny)
        return np.where(block.similar, np.maximum(r, 1.0), np.minimum(r, 1.0))


def _inverse_and_log_det(L: Floats) -> tuple[Floats, float]:
    lu, pivots = scipy.linalg.lu_factor(L, check_finite=False)
    inverse: Floats = scipy.linalg.lu_solve((lu, pivots), np.eye(len(L)), check_finite=False)
    return inverse, float(np.log(np.abs(np.diag(lu))).sum())
