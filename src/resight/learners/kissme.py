"""KISSME, a metric from a likelihood ratio test of two Gaussians, and its kernel form."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg

from resight.errors import InputError
from resight.learners._base import Codes, Floats, KernelMetricLearner
from resight.learners._graphs import shrink
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._parameters import Components, NotNegative, Positive, Share
from resight.learners._solvers import quadratic_form
from resight.learners._subspace import LinearLearner, Projection, pca, round_off


class KISSME(LinearLearner):
    """Ask which of two Gaussians a difference comes from: similar or dissimilar pairs.

    It uses ``cameras``: pairs are pairs across cameras.

    Parameters
    ----------
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on. "auto" is up to 100, and without
        `reg` at most half of the independent differences among similar pairs, so that their
        covariance can be inverted; "full" is all.
    reg : float, default=0.0
        Both covariances become (1 - reg) C + reg tr(C) / N I. The paper has none; a public
        benchmark uses 0.1, which helps where persons are few.
    dissimilar_weight : float, default=1.0
        Weight of the dissimilar part of the metric; the same benchmark uses 0.1.
    psd : bool, default=True
        Project the metric onto the positive semi-definite cone, as the paper does. Without it
        `distances` may be negative and `transform` is refused; some published runs do that.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_features, n_components_)
        With ``psd=True`` the embedding is ``(X - mean_) @ components_``; otherwise principal
        directions.
    metric_ : ndarray of shape (n_pca_, n_pca_)
        M between principal components (before the projection).

    Notes
    -----
    M = C_S^-1 - dissimilar_weight C_D^-1 with C_S, C_D the mean of (x_i - x_j)(x_i - x_j)^T over
    similar and over dissimilar pairs. All pairs across cameras count, in closed form, where the
    published code draws as many dissimilar pairs at random as there are similar ones. The
    regulariser divides the trace by the number of sightings, as published. The projection sets
    negative eigenvalues to 0 (published code: to 1e-6).

    References
    ----------
    M. Köstinger, M. Hirzer, P. Wohlhart, P. M. Roth, H. Bischof, "Large scale metric learning from
    equivalence constraints", CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KISSME
    >>> rng = np.random.default_rng(0)
    >>> persons, cameras = np.tile(np.arange(40), 2), np.repeat([0, 1], 40)
    >>> X = rng.normal(size=(40, 5))[persons] + 0.1 * rng.normal(size=(80, 5))
    >>> KISSME().fit(X, persons, cameras).distances(X[:2], X[40:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1
    learned = "metric_ n_pca_"

    pca: Components = "auto"
    reg: Share = 0.0
    dissimilar_weight: NotNegative = 1.0
    psd: bool = True

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        self._learn(X, CrossCameraPairs(persons, cameras))

    def _learn(self, X: Floats, pairs: CrossCameraPairs) -> None:
        independent = pairs.n_independent
        limit = None if self.reg else max(independent // 2, 1)
        projection = pca(X, self.pca, limit=limit)
        Z = projection(X)  # (N, p)
        C_S = shrink(Z.T @ pairs.mean_similar(Z), self.reg, len(Z))
        C_D = shrink(Z.T @ pairs.mean_dissimilar(Z), self.reg, len(Z))
        if not self.reg and independent < len(C_S):
            raise _too_few_pairs(pairs.n_similar, independent, len(C_S))
        try:
            self.metric_ = _inverse(C_S) - self.dissimilar_weight * _inverse(C_D)
        except scipy.linalg.LinAlgError:
            raise _too_few_pairs(pairs.n_similar, independent, len(C_S)) from None
        self.n_pca_ = len(C_S)
        root = positive_root(self.metric_) if self.psd else np.eye(len(C_S))
        self._keep(projection.mean, projection.basis @ root)

    def _embed(self, X: Floats) -> Floats:
        if not self.psd:
            raise InputError(
                "this KISSME was fitted with psd=False: its metric has negative eigenvalues, so no "
                "embedding has its distances. Use distances(), or fit with psd=True"
            )
        return super()._embed(X)

    def _distances(self, Q: Floats, G: Floats) -> Floats:
        if self.psd:
            return super()._distances(Q, G)
        projected = Projection(self.mean_, self.components_)
        return quadratic_form(projected(Q), projected(G), self.metric_)


class KernelKISSME(KernelMetricLearner):
    """Compare two Gaussians of differences, similar and dissimilar, in the space of a kernel.

    It uses ``cameras``: pairs are pairs across cameras.

    Parameters
    ----------
    kernel, gamma, width, degree, coef0
        The kernel, see `resight.kernels.Kernel`.
    reg : float, default=1e-3
        The ridge epsilon of both covariances in feature space.
    projection : {"coefficients", "metric"}, default="coefficients"
        What is made positive semi-definite: the matrix C between kernel rows, as the published
        code does, or the metric Phi^T C Phi itself, which is KISSME's definition. They differ
        most where the kernel matrix has no full rank (few features, linear or polynomial kernel).

    Attributes
    ----------
    coef_ : ndarray of shape (n_train, n_components_)
        The embedding is the kernel row against the training set times ``coef_``.

    Notes
    -----
    With H the Laplacian of n pairs, Woodbury's identity gives
    (Sigma + eps I)^-1 = I / eps - Phi^T T Phi with T = H (I + K H / (n eps))^-1 / (n eps^2), so
    the metric is C = T_D - T_S between kernel rows. All pairs across cameras count, where the
    published code draws dissimilar pairs at random.

    References
    ----------
    B. Nguyen, B. De Baets, "Kernel distance metric learning using pairwise constraints for person
    re-identification", IEEE TIP 28(2), 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import KernelKISSME
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(20), 2)
    >>> X = rng.normal(size=(20, 30))[persons] + 0.3 * rng.normal(size=(40, 30))
    >>> learner = KernelKISSME().fit(X, persons, cameras=np.repeat([0, 1], 20))
    >>> learner.distances(X[:2], X[20:]).argmin(axis=1)
    array([0, 1])
    """

    state_version = 1

    reg: Positive = 1e-3
    projection: Literal["coefficients", "metric"] = "coefficients"

    def _fit_kernel(self, K: Floats, persons: Codes, cameras: Codes | None) -> None:
        self._learn(K, CrossCameraPairs(persons, cameras))

    def _learn(self, K: Floats, pairs: CrossCameraPairs) -> None:
        identity = np.eye(len(K))
        H_S, H_D = pairs.mean_similar(identity), pairs.mean_dissimilar(identity)  # H / n
        C = _woodbury(H_D, K, self.reg) - _woodbury(H_S, K, self.reg)
        C = (C + C.T) / 2
        if self.projection == "coefficients":
            self.coef_ = positive_root(C)
        else:
            # K = R R^T; the metric between coordinates R is R^T C R, kernel rows k are R x.
            values, U = scipy.linalg.eigh(K, check_finite=False)
            kept = values > round_off(len(K)) * values[-1]
            roots, U = np.sqrt(values[kept]), U[:, kept]
            R = U * roots  # (N, rank)
            self.coef_ = (U / roots) @ positive_root(R.T @ C @ R)


def positive_root(M: Floats) -> Floats:
    """Return F with F F^T the nearest positive semi-definite matrix to M, (p, rank)."""
    values, vectors = scipy.linalg.eigh(M, check_finite=False)
    positive = values > round_off(len(M)) * np.abs(values).max()
    if not positive.any():
        raise InputError(
            "the similar pairs differ more than the dissimilar ones in every direction, so nothing "
            "is left of the metric; check persons and cameras, and that the pairs are not swapped"
        )
    return vectors[:, positive] * np.sqrt(values[positive])


def _inverse(C: Floats) -> Floats:
    """Inverse of a symmetric positive definite matrix; LinAlgError when there is none."""
    values, vectors = scipy.linalg.eigh(C)
    if values[0] <= round_off(len(C)) * values[-1]:
        raise scipy.linalg.LinAlgError("singular covariance")
    return (vectors / values) @ vectors.T


def _too_few_pairs(n_pairs: int, independent: int, n_dimensions: int) -> InputError:
    return InputError(
        f"{n_pairs} similar pairs give {independent} independent differences, which cannot fill "
        f"{n_dimensions} principal components: their covariance has no inverse. Give reg=0.1, "
        f"pca below {max(independent, 2)}, or more persons seen by two cameras"
    )


def _woodbury(H: Floats, K: Floats, reg: float) -> Floats:
    """Return T = H (I + K H / eps)^-1 / eps^2 for the mean Laplacian H of some pairs."""
    system = H @ K / reg  # (N, N); T = (I + H K / eps)^-1 H / eps^2 is the same matrix
    system[np.diag_indices_from(system)] += 1.0
    return scipy.linalg.solve(system, H, overwrite_a=True, check_finite=False) / reg**2
