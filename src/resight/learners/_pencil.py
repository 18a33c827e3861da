"""The two matrices that XQDA and k-XQDA compare, and what their eigenvalues mean."""

from __future__ import annotations

import warnings

import numpy as np

from resight.learners._base import Floats
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import gram


def covariances(M: Floats, pairs: CrossCameraPairs) -> tuple[Floats, Floats]:
    """Return M^T L_S M / n_S and M^T L_D M / n_D, lower triangles in Fortran order.

    With features as rows of M these are Sigma_S and Sigma_D of XQDA; with the kernel matrix as
    M they are Lambda_S and Lambda_D of k-XQDA (Theorems 1 and 2).
    """
    similar = gram(similar_factor(M, pairs))  # n_S Sigma_S
    dissimilar = _everything(M, pairs)
    dissimilar -= similar
    dissimilar /= pairs.n_dissimilar
    similar /= pairs.n_similar
    return similar, dissimilar


def similar_factor(M: Floats, pairs: CrossCameraPairs) -> Floats:
    """Return P with P P^T = M^T L_S M, shape (columns of M, rank of L_S)."""
    _, F, s = pairs.similar.eigenbasis()
    transposed: Floats = (F * np.sqrt(s)).T.tocsr() @ M  # (rank, columns), cheap: F is sparse
    return transposed.T


def _everything(M: Floats, pairs: CrossCameraPairs) -> Floats:
    """Return M^T L_all M: one symmetric update and one for each camera."""
    # L_all ignores the mean; without it nothing cancels, and the term in 1 1^T vanishes.
    centred = M - M.mean(axis=0)
    if pairs.cameras is None:  # L_all = N I - 1 1^T
        return gram(centred.T, float(len(M)))
    of_camera = np.eye(int(pairs.cameras.max()) + 1)[pairs.cameras]  # (N, n_cameras)
    sums = centred.T @ of_camera
    centred *= np.sqrt(pairs.everything.degrees)[:, None]
    return gram(sums, into=gram(centred.T))


def direction_weights(mu: Floats, *, quiet: bool = False) -> Floats:
    """Return sqrt(1 - 1/mu), the weights of directions; warn when no eigenvalue exceeds 1.

    The weights are the square root of the metric of Theorem 3. Without any eigenvalue above 1
    the leading direction is kept with weight 1.
    """
    if mu[0] > 1.0:
        return np.asarray(np.sqrt(1.0 - 1.0 / mu))
    if not quiet:
        warnings.warn(
            f"no direction separates dissimilar from similar pairs (largest eigenvalue {mu[0]:.3g} "
            "is not above 1), so the ranking is hardly better than chance. Lower reg, make it "
            "relative to the data (reg_form='relative' of k-XQDA), or check persons and cameras",
            RuntimeWarning,
            stacklevel=2,
        )
    return np.ones(len(mu))
