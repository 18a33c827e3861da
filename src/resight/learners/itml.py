"""Information-theoretic metric learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resight.errors import InputError
from resight.learners._base import Codes, Floats
from resight.learners._itml_objective import LogDetObjective, percentile_bounds
from resight.learners._pair_blocks import mean_distance, pair_blocks
from resight.learners._parameters import Components, Count, Positive
from resight.learners._quasi_newton import descend
from resight.learners._subspace import PCAMetricLearner


@dataclass(kw_only=True, eq=False, repr=False)
class ITML(PCAMetricLearner):
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
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        The embedding is ``(X - mean_) @ components_``.
    bounds_ : ndarray of shape (2,)
        The bounds, as squared distances of the given features.
    objective_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never increases.
    gradient_norm_ : float
        Largest entry of the gradient at the end.
    n_iter_ : int
    converged_ : bool
        Whether the stopping criterion was met; if not, the fit warns.

    Notes
    -----
    It minimises the LogDet divergence to the identity plus gamma times that of the slack bounds
    from the given ones. The problem is convex with one solution. The published cyclic Bregman
    projections (one pair after another, a rank-one update each) approach it; here the slack, whose
    best value is known in closed form, is eliminated, and L-BFGS on the factor of the metric
    reaches the same solution with all pairs in every step. `resight.learners._itml_objective` has
    the equations, the dual variables and the optimality conditions.

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
    learned = "bounds_ objective_ n_iter_ gradient_norm_ converged_"

    gamma: Positive = 1.0
    percentiles: tuple[float, float] = (5.0, 95.0)
    pca: Components = "auto"
    max_iter: Count = 1000
    tol: Positive = 1e-4

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        percentiles = self._checked_percentiles()
        blocks = pair_blocks(persons, cameras)
        factor = float(mean_distance(blocks, Z) ** -0.5)
        bounds = percentile_bounds(blocks, factor * Z, percentiles)
        objective = LogDetObjective(blocks, factor * Z, bounds, self.gamma)
        self.bounds_ = np.array([bounds.upper, bounds.lower]) / factor**2
        return descend(
            self, objective, Z.shape[1]
        ).T  # (p, p): scaled features and scaled bounds give the metric of unscaled ones

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
