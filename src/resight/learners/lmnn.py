"""Large margin nearest neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from resight.learners._base import Codes, Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._lmnn_objective import MISSING, LMNNObjective, target_neighbors
from resight.learners._parameters import Components, Count, Positive, PositiveShare
from resight.learners._quasi_newton import descend
from resight.learners._subspace import PCAMetricLearner


@dataclass(kw_only=True, eq=False, repr=False)
class LMNN(PCAMetricLearner):
    """Pull the nearest sightings of the same person close, push impostors a margin further away.

    It uses ``cameras``: target neighbours and impostors are sightings of other cameras, which are
    those that a search across cameras ranks.

    Parameters
    ----------
    n_neighbors : int, default=1
        Target neighbours of a sighting: its nearest sightings of the same person in other
        cameras, by Euclidean distance; fewer where the person has fewer.
    push : float, default=0.5
        Weight of the push, above 0 and at most 1; the pull has the rest.
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    smoothing : float, default=0.1
        Width of the rounded corner of the hinge, in units of the margin.
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-3
        It stops when no entry of the gradient exceeds this.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        The embedding is ``(X - mean_) @ components_``.
    objective_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never increases.
    gradient_norm_ : float
        Largest entry of the gradient at the end.
    n_iter_ : int
    converged_ : bool
        Whether the stopping criterion was met; if not, the fit warns.

    Notes
    -----
    Over the n target pairs (i, j) and the impostors l of i, it minimises

        f(L) = 1/n [ (1 - push) sum d_ij + push sum max(0, 1 + d_ij - d_il) ],
        d_ij = |L x_i - L x_j|^2.

    The features are first divided by one number that makes the mean squared distance of target
    pairs 1, so the result does not depend on their scale. All impostors of all anchors are
    evaluated in every step (matrix products, no list of triplets), and L-BFGS with a line search
    takes the place of the published fixed-step gradient with its impostor set refreshed every
    15 steps.

    The hinge has a corner in which a minimum may lie without the gradient being 0 there. It is
    therefore rounded over ``smoothing``, which lowers a term by at most smoothing / 2.

    The metric is free in all dimensions: with fewer target pairs than principal components the
    pull can be driven to 0 by dropping the directions in which they differ, which does not carry
    over to new persons. A smaller ``pca`` helps.

    References
    ----------
    K. Q. Weinberger, L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import LMNN
    >>> X = np.array([[0.0, 0], [1, 1], [2, 0], [0, 5], [1, 6], [2, 5]])
    >>> learner = LMNN().fit(X, [1, 2, 3, 1, 2, 3], cameras=[0, 0, 0, 1, 1, 1])
    >>> bool(learner.objective_[-1] < learner.objective_[0])
    True
    """

    state_version = 1
    learned = "objective_ n_iter_ gradient_norm_ converged_"

    n_neighbors: Count = 1
    push: PositiveShare = 0.5
    pca: Components = "auto"
    smoothing: Positive = 0.1
    max_iter: Count = 1000
    tol: Positive = 1e-3

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        CrossCameraPairs(persons, cameras)  # refuses data without target or impostor
        targets = target_neighbors(Z, persons, cameras, self.n_neighbors)
        factor = 1.0 / _typical_distance(Z, targets)
        objective = LMNNObjective(
            factor * Z, persons, cameras, targets, push=self.push, smoothing=self.smoothing
        )
        return factor * descend(self, objective, Z.shape[1]).T  # (p, p)


def _typical_distance(Z: Floats, targets: Codes) -> float:
    """Root mean squared distance of target pairs; that of any two rows where those coincide."""
    anchors, ranks = np.nonzero(targets != MISSING)
    apart = Z[anchors] - Z[targets[anchors, ranks]]
    squared = float((apart * apart).sum() / len(anchors))
    spread = 2.0 * float((Z * Z).sum() / len(Z))  # Z is centred
    return float(np.sqrt(squared if squared > 1e-12 * spread else spread))
