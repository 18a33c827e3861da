"""Work in the span of the training rows: exact coordinates and PCA without a d x d matrix."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from resight.errors import InputError
from resight.learners._base import Codes, Floats, MetricLearner

#: What ``pca="auto"`` keeps at most: the usual figure of re-identification benchmarks.
AUTO_COMPONENTS = 100


@dataclass(frozen=True)
class Projection:
    """An affine map onto orthonormal directions.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        What is subtracted first.
    basis : ndarray of shape (n_features, n_components)
        Orthonormal columns.
    """

    mean: Floats
    basis: Floats

    def __call__(self, X: Floats) -> Floats:
        """Return the coordinates of the rows of X, shape (n_rows, n_components)."""
        coordinates: Floats = (X - self.mean) @ self.basis
        return coordinates


def span(X: Floats) -> Floats:
    """Return an orthonormal basis of the row space of X, shape (n_features, rank)."""
    return _right_singular(np.asarray(X, dtype=np.float64))[0]


def pca(X: Floats, n_components: int | str, limit: int | None = None) -> Projection:
    """Principal components of the rows of X, strongest first.

    Parameters
    ----------
    X : ndarray of shape (n_sightings, n_features)
        Training rows.
    n_components : int, "auto" or "full"
        A number larger than the data allow is refused; ``"auto"`` keeps up to 100 components, or
        as many as there are; ``"full"`` keeps every direction in which the rows vary, a mere
        rotation of the training rows.
    limit : int, optional
        The most that ``"auto"`` may keep, where the method that follows has a limit of its own.

    Notes
    -----
    The cost is that of the smaller of the two Gram matrices, whatever the larger side.
    """
    mean = X.mean(axis=0, dtype=np.float64)
    wanted = n_components if isinstance(n_components, (int, np.integer)) else None
    if n_components == "auto":
        wanted = min(AUTO_COMPONENTS, AUTO_COMPONENTS if limit is None else limit)
    basis, rank = _right_singular(X - mean, wanted)
    if rank == 0:
        raise InputError(
            f"all {len(X)} training sightings have the same features; "
            "a metric needs sightings that differ"
        )
    if n_components != "auto" and wanted is not None and wanted > rank:
        raise InputError(
            f"pca={wanted} is larger than the data allow: {len(X)} sightings of {X.shape[1]} "
            f"features vary in {rank} directions; give at most {rank}, or 'auto' or 'full'"
        )
    return Projection(mean, basis)


def _right_singular(X: Floats, n_components: int | None = None) -> tuple[Floats, int]:
    """Right singular vectors (n_features, n_components) of X, and the rank of X."""
    n_rows, n_features = X.shape
    tall = n_features <= n_rows
    gram = X.T @ X if tall else X @ X.T
    values, vectors = scipy.linalg.eigh(gram, overwrite_a=True, check_finite=False)
    floor = max(n_rows, n_features) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    rank = int(np.count_nonzero(values > floor))
    kept = rank if n_components is None else min(n_components, rank)
    vectors = vectors[:, len(values) - kept :][:, ::-1]
    if tall or kept == 0:
        return (vectors if tall else np.empty((n_features, 0))), rank
    # A Gram matrix squares the condition of the data: one Rayleigh-Ritz step on the images of
    # its eigenvectors makes the directions orthonormal and exact again.
    Q, R = scipy.linalg.qr(X.T @ vectors, mode="economic", overwrite_a=True, check_finite=False)
    rotation = scipy.linalg.svd(R, check_finite=False)[0]
    return Q @ rotation, rank  # (n_features, kept)


class PCAMetricLearner(MetricLearner):
    """A learner that works after PCA of the training rows.

    It implements `_fit_reduced`, which returns the linear map that follows the PCA. The learner
    keeps ``mean_`` (n_features,) and ``components_`` (n_features, n_components): the embedding of
    a sighting is its centred descriptor times ``components_``.
    """

    pca: int | str

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        projection = pca(X, self.pca)
        self.n_pca_ = projection.basis.shape[1]
        self._store(projection, self._fit_reduced(projection(X), persons, cameras))

    @abstractmethod
    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        """Learn from principal components Z; return a matrix (n_pca, n_components)."""

    def _store(self, projection: Projection, transformation: Floats) -> None:
        self.mean_ = projection.mean
        self.components_ = projection.basis @ transformation
        self.n_components_ = self.components_.shape[1]

    def _embed(self, X: Floats) -> Floats:
        return Projection(self.mean_, self.components_)(X)
