"""KISSME: a metric from a likelihood ratio test of two Gaussians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from resight.errors import InputError
from resight.learners._base import Floats
from resight.learners._graphs import shrink
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pairs import ListedPairs, PairLearner, n_independent_similar, positive_root
from resight.learners._parameters import Components, NotNegative, Share
from resight.learners._solvers import quadratic_form
from resight.learners._subspace import Projection, pca, round_off


@dataclass(kw_only=True, eq=False, repr=False)
class KISSME(PairLearner):
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
    published code draws as many dissimilar pairs at random as there are similar ones; `fit_pairs`
    takes pairs that you have drawn. The regulariser divides the trace by the number of sightings,
    as published. The projection sets negative eigenvalues to 0 (published code: to 1e-6).

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
    turned = True
    learned = "metric_ n_pca_ mean_ components_"

    pca: Components = "auto"
    reg: Share = 0.0
    dissimilar_weight: NotNegative = 1.0
    psd: bool = True

    def _fit_to_pairs(self, X: Floats, pairs: CrossCameraPairs | ListedPairs) -> None:
        independent = n_independent_similar(pairs)
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
        self.mean_ = projection.mean
        self.components_ = projection.basis @ (
            positive_root(self.metric_) if self.psd else np.eye(len(Z.T))
        )
        self.n_components_ = self.components_.shape[1]

    def _embed(self, X: Floats) -> Floats:
        if not self.psd:
            raise InputError(
                "this KISSME was fitted with psd=False: its metric has negative eigenvalues, so no "
                "embedding has its distances. Use distances(), or fit with psd=True"
            )
        return self._projected(X)

    def _distances(self, Q: Floats, G: Floats) -> Floats:
        if self.psd:
            return super()._distances(Q, G)
        return quadratic_form(self._projected(Q), self._projected(G), self.metric_)

    def _projected(self, X: Floats) -> Floats:
        return Projection(self.mean_, self.components_)(X)


def _inverse(C: Floats) -> Floats:
    """Inverse of a symmetric positive definite matrix; LinAlgError when there is none."""
    values, vectors = scipy.linalg.eigh(C)
    if values[0] <= round_off(len(C)) * values[-1]:
        raise scipy.linalg.LinAlgError("singular covariance")
    inverse: Floats = (vectors / values) @ vectors.T
    return inverse


def _too_few_pairs(n_pairs: int, independent: int, n_dimensions: int) -> InputError:
    return InputError(
        f"{n_pairs} similar pairs give {independent} independent differences, which cannot fill "
        f"{n_dimensions} principal components: their covariance has no inverse. Give reg=0.1, "
        f"pca below {max(independent, 2)}, or more persons seen by two cameras"
    )
