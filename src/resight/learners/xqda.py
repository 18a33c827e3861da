"""XQDA: Cross-view Quadratic Discriminant Analysis, the linear method that k-XQDA extends."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import LinAlgError, lapack, solve_triangular

from resight.errors import InputError
from resight.kernels import inner_products
from resight.learners._base import Codes, Floats, MetricLearner
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._parameters import Count, Positive
from resight.learners._solvers import direction_weights, leading_pencil, quadratic_form


class XQDA(MetricLearner):
    """Learn a linear cross-view subspace and its metric.

    It uses `cameras`: similar and dissimilar pairs are pairs across cameras.

    Parameters
    ----------
    reg : float, default 1e-3
        Added to the diagonal of the similar pairs' covariance, as published.
    n_components : int, optional
        Keep at most this many directions; by default all with an eigenvalue above 1.
    solver : {"eigh", "svd"}, default "eigh"
        "eigh" is the paper's definition: eigenvectors of Sigma_S^-1 Sigma_D, a positive
        semi-definite metric. "svd" does as the published code does: left singular vectors of
        that matrix and no projection, an indefinite metric, so `transform` refuses.

    Attributes
    ----------
    components_ : array (n_features, n_components_)
        Directions W; with "eigh" already weighted, so that distances are Euclidean.
    eigenvalues_ : array (n_components_,)
        Ratios of dissimilar to similar variance, largest first ("svd": singular values).
    metric_ : array (n_components_, n_components_) or None
        The indefinite metric M between projections ("svd" only).

    References
    ----------
    S. Liao, Y. Hu, X. Zhu and S. Z. Li, "Person Re-identification by Local Maximal Occurrence
    Representation and Metric Learning", CVPR 2015.

    Notes
    -----
    With more features than sightings the problem is solved exactly in the coordinates of the
    rows' span, from their inner products, and no feature by feature matrix is formed.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import XQDA
    >>> rng = np.random.default_rng(0)
    >>> persons = np.tile(np.arange(30), 2)
    >>> X = rng.normal(size=(30, 50))[persons] + 0.5 * rng.normal(size=(60, 50))
    >>> XQDA().fit(X, persons, np.repeat(["A", "B"], 30)).distances(X[:30], X[30:]).shape
    (30, 30)
    """

    state_version = 1
    turned = True
    learned = "components_ eigenvalues_ metric_"

    reg: Positive = 1e-3
    n_components: Count | None = None
    solver: Literal["eigh", "svd"] = "eigh"

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        pairs = CrossCameraPairs(persons, cameras)
        if X.shape[1] > X.shape[0]:
            coordinates, lift = span_coordinates(inner_products(X, X))
            mu, V, self.metric_ = self._solve(coordinates, pairs)
            self.components_ = X.T @ (lift @ V)
        else:
            mu, V, self.metric_ = self._solve(X, pairs)
            self.components_ = V
        self.eigenvalues_ = mu
        self.n_components_ = len(mu)

    def _solve(self, C: Floats, pairs: CrossCameraPairs) -> tuple[Floats, Floats, Floats | None]:
        """Return eigenvalues, directions in the coordinates `C`, and the indefinite metric."""
        similar, dissimilar = pairs.covariances(C)
        similar.flat[:: len(similar) + 1] += self.reg
        if self.solver == "svd":
            return self._solve_svd(similar, dissimilar)
        scale = float(similar.diagonal().max())
        try:
            mu, V = leading_pencil(dissimilar, similar, len(similar), above=1.0)
        except LinAlgError:
            raise InputError(
                f"reg={self.reg:g} is too small for the scale of these features (variances up to "
                f"{scale:.3g}): the matrix of similar pairs is numerically singular. Give a reg of "
                f"at least {1e-12 * scale:.1g}, or normalise the features first"
            ) from None
        kept = self._kept(mu)
        return mu[:kept], V[:, :kept] * direction_weights(mu[:kept]), None

    def _solve_svd(self, similar: Floats, dissimilar: Floats) -> tuple[Floats, Floats, Floats]:
        similar, dissimilar = _full(similar), _full(dissimilar)
        V, values, _ = np.linalg.svd(np.linalg.solve(similar, dissimilar))
        kept = self._kept(values)
        V = V[:, :kept]
        within, between = V.T @ similar @ V, V.T @ dissimilar @ V
        return values[:kept], V, np.linalg.inv(within) - np.linalg.inv(between)

    def _kept(self, mu: Floats) -> int:
        above = max(1, int((mu > 1.0).sum()))
        return above if self.n_components is None else min(above, self.n_components)

    def _embed(self, X: Floats) -> Floats:
        if self.metric_ is not None:
            raise InputError(
                "solver='svd' gives an indefinite metric, which no Euclidean embedding can "
                "represent; use distances(Q, G), or solver='eigh' for an embedding"
            )
        return X @ self.components_

    def _distances(self, Q: Floats, G: Floats) -> Floats:
        if self.metric_ is None:
            return super()._distances(Q, G)
        return quadratic_form(Q @ self.components_, G @ self.components_, self.metric_)


def span_coordinates(products: Floats) -> tuple[Floats, Floats]:
    """Coordinates (N, r) of rows in an orthonormal basis of their span, from inner products.

    Also returns lift (N, r): X^T lift is the basis. Pivoted Cholesky: equal images and centred
    data make the matrix of products singular, so only pivots above round-off are kept.
    """
    n = len(products)
    factor, pivots, rank, _ = lapack.dpstrf(products, lower=1)
    order = pivots - 1
    L = np.tril(factor)[:, :rank]  # products[order][:, order] = L L^T
    coordinates = np.empty((n, rank))
    coordinates[order] = L
    lift = np.zeros((n, rank))
    lift[order[:rank]] = solve_triangular(L[:rank].T, np.eye(rank), check_finite=False)
    return coordinates, lift


def _full(lower: Floats) -> Floats:
    return np.tril(lower) + np.tril(lower, -1).T
