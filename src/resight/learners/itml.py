"""Information-theoretic metric learning."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from resight.errors import InputError
from resight.learners._base import Codes, Floats
from resight.learners._laplacian import AllPairs
from resight.learners._parameters import Components, Count, Positive
from resight.learners._subspace import DescendingLearner

#: Pairs closer than this fraction of the mean squared distance coincide: no metric parts them.
COINCIDENT = 1e-10


class ITML(DescendingLearner):
    """The metric nearest to the Euclidean one that keeps pairs within bounds, with slack.

    It uses ``cameras``: every cross-camera pair is one constraint.

    Parameters
    ----------
    gamma : float, default=1.0
        Price of slack: the larger, the closer the pairs keep to the bounds.
    percentiles : (float, float), default=(5, 95)
        Percentiles of the squared Euclidean distances of cross-camera training pairs, which become
        the bounds: similar pairs are to be at most the first, dissimilar at least the second.
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-4
        It stops when no entry of the gradient exceeds this.

    Attributes
    ----------
    bounds_ : ndarray of shape (2,)
        The bounds, as squared distances of the given features.
    mean_, components_, objective_, gradient_norm_, n_iter_, converged_
        As in `LMNN`.

    Notes
    -----
    It minimises the LogDet divergence to the identity plus gamma times that of the slack bounds
    from the given ones. The problem is convex with one solution. The published cyclic Bregman
    projections (one pair after another, a rank-one update each) approach it; here the slack, whose
    best value is known in closed form, is eliminated, and L-BFGS on the factor of the metric
    reaches the same solution with all pairs in every step. `LogDetObjective` beside this
    class has the equations, the dual variables and the optimality conditions.

    Two more departures. The published code draws pairs and bounds at random; here all
    cross-camera pairs and exact percentiles are used, so nothing is random. Pairs of different
    persons with the same features, which no metric can part, are left out.

    The bounds come from the features themselves, so the learned metric does not depend on their
    scale; they are divided by one number inside, so that the iterations do not either.

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon, "Information-theoretic metric learning",
    ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import ITML
    >>> X = np.array([[0.0, 0], [1, 1], [2, 0], [0, 5], [1, 6], [2, 5]])
    >>> learner = ITML().fit(X, [1, 2, 3, 1, 2, 3], cameras=[0, 0, 0, 1, 1, 1])
    >>> bool(learner.objective_[-1] < learner.objective_[0])
    True
    """

    state_version = 1
    learned = "bounds_"

    gamma: Positive = 1.0
    percentiles: tuple[float, float] = (5.0, 95.0)
    pca: Components = "auto"
    max_iter: Count = 1000
    tol: Positive = 1e-4

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        percentiles = self._checked_percentiles()
        pairs = AllPairs(persons, cameras)
        factor = float(pairs.mean_distance(Z) ** -0.5)
        bounds = percentile_bounds(pairs, factor * Z, percentiles)
        objective = LogDetObjective(pairs, factor * Z, bounds, self.gamma)
        self.bounds_ = np.array(bounds) / factor**2
        # Scaled features and scaled bounds give the metric of unscaled ones.
        return self._descend(objective, Z.shape[1]).T  # (p, p)

    def _checked_percentiles(self) -> tuple[float, float]:
        try:
            first, second = (float(value) for value in self.percentiles)
            usable = 0.0 <= first < second <= 100.0
        except (TypeError, ValueError):
            usable = False
        if not usable:
            raise InputError(
                f"percentiles={self.percentiles!r} is not a pair (first, second) with "
                "0 <= first < second <= 100; the usual bounds are (5, 95)"
            )
        return first, second


def percentile_bounds(
    pairs: AllPairs, Z: Floats, percentiles: tuple[float, float]
) -> tuple[float, float]:
    """Percentiles of the squared distances of all pairs that do not coincide."""
    upper, lower = np.percentile(pairs.distances(Z)[_distinct(pairs, Z)], percentiles)
    return float(upper), float(lower)


def _distinct(pairs: AllPairs, Z: Floats) -> NDArray[np.bool_]:
    """Whether the rows of a pair differ: by more than a tiny fraction of the spread of Z."""
    spread = 2.0 * Z.var(axis=0).sum()  # mean squared distance of two rows
    return (pairs.distances(Z) > COINCIDENT * spread) & (pairs.times != 0.0)


class LogDetObjective:
    """The problem of ITML with its slack solved for: a smooth function f of the metric alone.

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

    Here A = L^T L, each pair of Z (N, d) is a constraint, and `bounds` are xi_0 of similar pairs
    (at most that far) and of dissimilar ones (at least that far).
    """

    def __init__(
        self, pairs: AllPairs, Z: Floats, bounds: tuple[float, float], gamma: float
    ) -> None:
        self.pairs, self.Z = pairs, Z
        self.wanted = np.where(pairs.similar, *bounds)
        self.gammas = gamma * pairs.times * _distinct(pairs, Z)

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """Return f and its gradient by L, for invertible L of shape (d, d)."""
        E = self.Z @ L.T  # (N, d)
        # d_A / xi_0 where the bound is violated, 1 (no loss, no dual variable) elsewhere
        r = np.maximum(self.pairs.distances(E) / self.wanted, np.finfo(np.float64).tiny)
        r = np.where(self.pairs.similar, np.maximum(r, 1.0), np.minimum(r, 1.0))
        slack = float((self.gammas * (r - np.log(r) - 1.0)).sum())
        duals = self.gammas * (1.0 - 1.0 / r) / self.wanted  # delta lambda
        factors = scipy.linalg.lu_factor(L, check_finite=False)
        inverse = scipy.linalg.lu_solve(factors, np.eye(len(L)), check_finite=False)
        log_det = float(np.log(np.abs(np.diag(factors[0]))).sum())
        value = float((L * L).sum()) - 2.0 * log_det - len(L) + slack
        # 2 L (I + X^T Laplacian(delta lambda) X - A^-1), with L A^-1 = L^-T
        return value, 2.0 * (L + self.pairs.laplacian_times(duals, E).T @ self.Z - inverse.T)
