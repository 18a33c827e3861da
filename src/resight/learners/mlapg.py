"""MLAPG: metric learning by accelerated proximal gradient on a weighted logistic loss."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from resight._progress import progress
from resight.learners._base import Codes, Floats
from resight.learners._laplacian import AllPairs
from resight.learners._parameters import Components, Count, NotNegative, Positive, Precision
from resight.learners._subspace import PCAMetricLearner

#: Lipschitz constant the line search starts from (the authors' code).
FIRST_LIPSCHITZ = 2.0**-8

#: The line search multiplies it by this until the step is short enough.
LIPSCHITZ_GROWTH = 2.0


class MLAPG(PCAMetricLearner):
    """Pull similar pairs below and push dissimilar pairs above one distance, logistic loss.

    It uses ``cameras``: only cross-camera pairs count, similar and dissimilar ones with the same
    total weight.

    Parameters
    ----------
    pca : int, "auto" or "full", default="full"
        Principal components of the training rows to work on; "full" is all (N - 1 of wide data),
        as its authors do, "auto" up to 100.
    scale : float or None, default=1.5
        The features are multiplied by one number so that the mean squared distance of
        cross-camera pairs, which is mu, becomes this; the learned ranking then does not depend on
        the scale of the features. None leaves them as they are, which is the authors' code.
    max_iter : int, default=300
        Iterations at most.
    tol : float, default=1e-4
        It stops when the loss changes by less than this fraction of the loss at the start; with
        ``scale=None`` of the last loss, as in the authors' code.
    precision : {"float64", "float32"}, default="float64"
        Arithmetic of the iterations; "float32" takes half the time.

    Attributes
    ----------
    mean_, components_
        As in `LFDA`.
    objective_ : ndarray of shape (n_iter_ + 1,)
        The loss at the start and after each iteration.
    n_iter_ : int
    converged_ : bool
        Whether the stopping criterion was met; if not, the fit warns.

    Notes
    -----
    It minimises over positive semi-definite M, by accelerated proximal gradient from M = I,

        F(M) = sum_ij w_ij log(1 + exp(y_ij (d_M(x_i, x_j) - mu))),

    with y = 1, w = 1/n_S for similar and y = -1, w = 1/n_D for dissimilar cross-camera pairs and
    mu their mean squared distance before learning. Accelerated steps may raise the loss a little
    before it falls again.

    mu is measured on the scale of the features, but the bend of the logistic function has a width
    of 1, so the scale decides what is learned. ``scale`` sets mu and makes the result independent
    of the features' scale; ``scale=None`` gives the authors' numbers. The default is the mu that
    raw LOMO, the authors' own features, has by itself. With a large mu hardly any direction has
    to be dropped for a small loss, and the metric stays near the Euclidean one.
    When all pairs can be satisfied the loss tends to 0 and never changes little in proportion to
    itself, hence the other reference for ``tol``.

    An iteration costs an eigendecomposition and a few matrix products in the PCA coordinates.

    References
    ----------
    S. Liao, S. Z. Li. Efficient PSD constrained asymmetric metric learning for person
    re-identification. ICCV 2015.

    Examples
    --------
    >>> from resight import MLAPG
    >>> X = [[0.0, 0.1], [1.0, 0.3], [0.1, 0.9], [1.1, 0.8]]
    >>> MLAPG().fit(X, [0, 1, 0, 1], cameras=[0, 0, 1, 1]).transform(X).shape[0]
    4
    """

    state_version = 1
    learned = "objective_ n_iter_ converged_"

    pca: Components = "full"
    scale: Positive | None = 1.5
    max_iter: Count = 300
    tol: NotNegative = 1e-4
    precision: Precision = "float64"

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        pairs = AllPairs(persons, cameras)
        factor = 1.0
        if self.scale is not None:
            factor = float(np.sqrt(self.scale / pairs.mean_distance(Z)))
        root = self._minimise(self._loss(pairs, factor * Z))
        return factor * root.astype(np.float64, copy=False)

    def _loss(self, pairs: AllPairs, Z: Floats) -> LogisticLoss:
        return LogisticLoss(pairs, Z, self.precision)

    def _minimise(self, loss: LogisticLoss) -> Floats:
        """Accelerated proximal gradient from M = I; return P with M = P P^T."""
        current = previous = loss.at(np.eye(loss.Z.shape[1], dtype=loss.Z.dtype))
        lipschitz, last, momentum = FIRST_LIPSCHITZ, 0.0, 1.0
        values = [current.value]
        self.converged_ = False
        with progress(type(self).__name__, self.max_iter) as advance:
            while not self.converged_ and len(values) <= self.max_iter:
                pace = (last - 1.0) / momentum
                step, lipschitz = loss.accelerated_step(current, previous, pace, lipschitz)
                previous, current = current, step
                last, momentum = momentum, (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
                reference = values[-1] if self.scale is None else values[0]
                self.converged_ = abs(step.value - values[-1]) < self.tol * reference
                values.append(step.value)
                advance(1)
        self.objective_, self.n_iter_ = np.array(values), len(values) - 1
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} iterations; the "
                f"loss still changed by more than tol={self.tol:g} allows: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return current.root


@dataclass(frozen=True)
class Metric:
    """A matrix M with what the iterations need to know about it."""

    M: Floats  # (d, d)
    root: Floats  # (d, r): M = root root^T
    distances: Floats  # d_M of the pairs
    value: float  # F(M)


class LogisticLoss:
    """The F(M) of `MLAPG` over the pairs of Z (N, d).

    `precision` is that of matrices; sums over pairs and over entries are float64 all the same.
    """

    def __init__(self, pairs: AllPairs, Z: Floats, precision: str = "float64") -> None:
        self.pairs = pairs
        self.mu = pairs.mean_distance(Z)
        self.Z: Floats = Z.astype(precision, copy=False)
        self.signs = np.where(pairs.similar, 1.0, -1.0)
        n_similar = float(pairs.times[pairs.similar].sum())
        n_dissimilar = float(pairs.times.sum()) - n_similar
        self.weights = pairs.times / np.where(pairs.similar, n_similar, n_dissimilar)

    def at(self, root: Floats) -> Metric:
        """Evaluate F at M = root root^T."""
        distances = self.pairs.distances(self.Z @ root)
        return Metric(root @ root.T, root, distances, self.value(distances))

    def value(self, distances: Floats) -> float:
        """F from the distances of the pairs."""
        return float((self.weights * np.logaddexp(0.0, self.signs * (distances - self.mu))).sum())

    def gradient(self, distances: Floats) -> Floats:
        """Gradient of F with respect to M from the distances of the pairs, (d, d)."""
        slopes = self.weights * self.signs * expit(self.signs * (distances - self.mu))
        return self.Z.T @ self.pairs.laplacian_times(
            slopes.astype(self.Z.dtype, copy=False), self.Z
        )

    def accelerated_step(
        self, current: Metric, previous: Metric, pace: float, lipschitz: float
    ) -> tuple[Metric, float]:
        """Step from V = M + pace (M - M_previous); return the new metric and its constant.

        The step is M' = PSD part of V - grad F(V) / L. L grows until F(M') is below the quadratic
        bound F(V) + <grad F(V), M' - V> + L/2 |M' - V|^2.
        """
        V = current.M + pace * (current.M - previous.M)
        # Distances are linear in the matrix, so those of V need no product with the features.
        distances = current.distances + pace * (current.distances - previous.distances)
        value, G = self.value(distances), self.gradient(distances)
        while True:
            step = self.at(psd_root(V - G / lipschitz, current.root.shape[1]))
            move = step.M - V
            if step.value <= value + _inner(G, move) + lipschitz / 2.0 * _inner(move, move):
                return step, lipschitz
            lipschitz *= LIPSCHITZ_GROWTH


def _inner(A: Floats, B: Floats) -> float:
    """Inner product of two matrices, summed in float64: the line search must not see noise."""
    return float(np.einsum("ij,ij->", A, B, dtype=np.float64))


def psd_root(S: Floats, expected_rank: int | None = None) -> Floats:
    """Return R of shape (d, r) with R R^T the positive semi-definite part of symmetric S.

    Where less than half of the eigenvalues are expected to be positive, only these are computed.
    """
    if expected_rank is not None and expected_rank < len(S) // 2:
        values, vectors = scipy.linalg.eigh(
            S, driver="evr", subset_by_value=(0.0, np.inf), check_finite=False
        )
        if not len(values):
            return psd_root(S)
    else:
        values, vectors = scipy.linalg.eigh(S, driver="evd", check_finite=False)
        first = min(int(np.searchsorted(values, 0.0, side="right")), len(values) - 1)
        values, vectors = values[first:], vectors[:, first:]
    return vectors * np.sqrt(np.maximum(values, 0.0))
