"""LDML: logistic discriminant metric learning."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from resight.learners._base import Floats
from resight.learners._laplacian import AllPairs
from resight.learners._parameters import Components
from resight.learners.mlapg import MLAPG, LogisticLoss


class LDML(MLAPG):
    """The metric under which a logistic model best tells similar pairs from dissimilar ones.

    It uses ``cameras``: every cross-camera pair counts, and all count the same.

    Parameters
    ----------
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    scale, max_iter, tol, precision
        As in `MLAPG`; ``scale`` says only where the iterations start.

    Attributes
    ----------
    bias_ : float
        A pair at this distance is as likely similar as dissimilar.
    objective_ : ndarray of shape (n_iter_ + 1,)
        Minus the mean log-likelihood at the start and after each iteration.
    mean_, components_, n_iter_, converged_
        As in `MLAPG`.

    Notes
    -----
    With p_ij = 1 / (1 + exp(d_M(x_i, x_j) - b)) the probability that a pair is similar, M and b
    maximise the likelihood

        sum_ij t_ij log p_ij + (1 - t_ij) log(1 - p_ij),

    t = 1 for similar pairs. It is concave in M and b together. The best b of a given M is found by
    Newton's method, and M positive semi-definite by the accelerated proximal gradient of `MLAPG`,
    which minimises the same loss with a fixed b and with similar pairs weighing as much as
    dissimilar ones. The paper climbs by the gradient and leaves open when to stop: where the pairs
    can be told apart without an error the likelihood has no maximum, and ``tol`` ends the climb.

    References
    ----------
    M. Guillaumin, J. Verbeek, C. Schmid, "Is that you? Metric learning approaches for face
    identification", ICCV 2009.

    Examples
    --------
    >>> from resight import LDML
    >>> X = [[0.0, 0.1], [1.0, 0.3], [0.1, 0.9], [1.1, 0.8]]
    >>> learner = LDML(tol=1e-2).fit(X, [0, 1, 0, 1], cameras=[0, 0, 1, 1])
    >>> bool(learner.objective_[-1] < learner.objective_[0])
    True
    """

    state_version = 1
    learned = "bias_"

    pca: Components = "auto"

    def _loss(self, pairs: AllPairs, Z: Floats) -> LogisticLoss:
        return _Likelihood(pairs, Z, self.precision)

    def _minimise(self, loss: LogisticLoss) -> Floats:
        root = super()._minimise(loss)
        loss.value(loss.at(root).distances)
        self.bias_ = float(loss.mu)
        return root


class _Likelihood(LogisticLoss):
    """Minus the mean log-likelihood of all pairs, at the best bias of the distances."""

    def __init__(self, pairs: AllPairs, Z: Floats, precision: str) -> None:
        super().__init__(pairs, Z, precision)
        self.weights = pairs.times / pairs.times.sum()

    def value(self, distances: Floats) -> float:
        self.mu = self._best_bias(distances)
        return super().value(distances)

    def gradient(self, distances: Floats) -> Floats:
        # The bias is at its optimum, so its own change adds nothing to the gradient.
        self.mu = self._best_bias(distances)
        return super().gradient(distances)

    def _best_bias(self, distances: Floats) -> float:
        """Newton's method from the last bias, kept inside the bracket of a root."""
        low, high, bias = -np.inf, np.inf, self.mu
        for _ in range(100):
            p = expit(self.signs * (distances - bias))
            slope = -float((self.weights * self.signs * p).sum())
            curvature = float((self.weights * p * (1.0 - p)).sum())
            low, high = (bias, high) if slope < 0.0 else (low, bias)
            step = -slope / max(curvature, 1e-12)
            proposed = bias + float(np.clip(step, -1.0, 1.0))
            if abs(step) <= 1e-12 * (1.0 + abs(bias)):
                break
            bias = proposed if low < proposed < high else (low + high) / 2.0
        return bias
