"""Linear learners, most of them after PCA, found in the span of the training rows.

No feature by feature matrix of wide data is ever formed.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning

from resight._progress import progress
from resight.errors import InputError
from resight.learners._base import Codes, Floats, MetricLearner
from resight.learners._parameters import Components
from resight.learners._solvers import gram, leading_eigenpairs

#: What ``pca="auto"`` keeps at most: the usual figure of re-identification benchmarks.
AUTO_COMPONENTS = 100

#: Columns converted to float64 together: bounds the copy that centring needs.
FEATURES_AT_ONCE = 2048

#: Steps and gradient differences that L-BFGS remembers.
MEMORY = 20

#: What learners that centre so accept as it is: float32 descriptors are never copied whole.
CENTRED_BY_COLUMNS: tuple[type, ...] = (np.float64, np.float32)


@dataclass(frozen=True)
class Projection:
    """An affine map onto orthonormal directions."""

    mean: Floats  # (n_features,): subtracted first
    basis: Floats  # (n_features, n_components): orthonormal columns

    def __call__(self, X: Floats) -> Floats:
        """Return the coordinates of the rows of X, shape (n_rows, n_components)."""
        coordinates = np.zeros((len(X), self.basis.shape[1]))
        for columns, block in _centred_blocks(X, self.mean):
            coordinates += block @ self.basis[columns]
        return coordinates


def _centred_blocks(X: Floats, mean: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield some columns of X - mean at a time, in float64: never a second copy of X."""
    for start in range(0, X.shape[1], FEATURES_AT_ONCE):
        columns = slice(start, start + FEATURES_AT_ONCE)
        yield columns, X[:, columns] - mean[columns]


def pca(X: Floats, n_components: int | str, limit: int | None = None) -> Projection:
    """Principal components of the rows of X, strongest first.

    A number larger than the data allow is refused; ``"auto"`` keeps up to 100 components, as many
    as there are, and at most `limit`, where the method that follows has one; ``"full"`` keeps
    every direction in which the rows vary, a mere rotation of the training rows. The cost is that
    of the smaller of the two Gram matrices, whatever the larger side.
    """
    mean = X.mean(axis=0, dtype=np.float64)
    most = min(len(X) - 1, X.shape[1])
    wanted = most
    if n_components == "auto":
        wanted = min(AUTO_COMPONENTS, most, AUTO_COMPONENTS if limit is None else limit)
    elif n_components != "full":
        wanted = int(n_components)
    basis = _right_singular(X, mean, min(wanted, most))
    rank = basis.shape[1]
    if wanted > rank and n_components not in ("auto", "full"):
        raise InputError(
            f"pca={wanted} is larger than the data allow: {len(X)} sightings of {X.shape[1]} "
            f"features vary in {rank} directions; give at most {rank}, or 'auto' or 'full'"
        )
    return Projection(mean, basis)


def _right_singular(X: Floats, mean: Floats, n_components: int) -> Floats:
    """Right singular vectors of X - mean, strongest first, (n_features, n_components or rank)."""
    n_rows, n_features = X.shape
    if n_features <= n_rows:
        centred = X - mean
        values, basis = leading_eigenpairs(gram(centred.T), n_components)
        return basis[:, : _n_positive(values, n_rows)]
    values, vectors = leading_eigenpairs(centred_products(X, mean), n_components)
    images = lift(X, mean, vectors[:, : _n_positive(values, n_features)])
    # A Gram matrix squares the condition of the data: one Rayleigh-Ritz step on the images of
    # its eigenvectors makes the directions orthonormal and exact again.
    Q, R = scipy.linalg.qr(images, mode="economic", overwrite_a=True, check_finite=False)
    return Q @ scipy.linalg.svd(R, check_finite=False)[0]


def centred_products(X: Floats, mean: Floats) -> Floats:
    """Inner products of the rows of X - mean (lower triangle, Fortran order), (n_rows, n_rows)."""
    products = np.zeros((len(X), len(X)), order="F")
    for _, block in _centred_blocks(X, mean):
        products = gram(block, into=products)
    return products


def lift(X: Floats, mean: Floats, coefficients: Floats) -> Floats:
    """Turn coefficients over training rows into directions: (X - mean)^T coefficients."""
    directions = np.empty((X.shape[1], coefficients.shape[1]))
    for columns, block in _centred_blocks(X, mean):
        directions[columns] = block.T @ coefficients
    return directions


def _n_positive(values: Floats, size: int) -> int:
    """Count eigenvalues, largest first, that are above round-off."""
    return int(np.count_nonzero(values > round_off(size) * max(float(values[0]), 0.0)))


def round_off(size: int) -> float:
    """Below this fraction of the largest eigenvalue of a matrix, another one counts as zero.

    Sums of a few terms are not exact to as many units in the last place either, hence the 100.
    """
    return max(size, 100) * float(np.finfo(np.float64).eps)


class LinearLearner(MetricLearner):
    """A learner with ``mean_`` (n_features,) and ``components_`` (n_features, n_components).

    The embedding of a sighting is its centred descriptor times ``components_``.
    """

    _dtypes = CENTRED_BY_COLUMNS
    turned = True
    learned = "mean_ components_"

    def _keep(self, mean: Floats, components: Floats) -> None:
        self.mean_, self.components_ = mean, components
        self.n_components_ = components.shape[1]

    def _embed(self, X: Floats) -> Floats:
        return Projection(self.mean_, self.components_)(X)


class PCAMetricLearner(LinearLearner):
    """A learner that works after PCA of the training rows.

    It implements `_fit_reduced`, which returns the linear map that follows the PCA.
    """

    learned = "n_pca_"

    pca: Components

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        projection = pca(X, self.pca)
        self.n_pca_ = projection.basis.shape[1]
        reduced = self._fit_reduced(projection(X), persons, cameras)
        self._keep(projection.mean, projection.basis @ reduced)

    @abstractmethod
    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        """Learn from principal components Z; return a matrix (n_pca, n_components)."""


class DescendingLearner(PCAMetricLearner):
    """A learner that descends to its metric and says how that ended."""

    learned = "objective_ n_iter_ gradient_norm_ converged_"

    max_iter: Any
    tol: Any

    def _descend(
        self, objective: Callable[[Floats], tuple[float, Floats]], n_dimensions: int
    ) -> Floats:
        """Minimise ``objective(L) -> (value, gradient)`` over square matrices from the identity.

        It stops when no entry of the gradient exceeds ``tol``, and warns with `ConvergenceWarning`
        when ``max_iter`` iterations or the precision of float64 end it earlier. The line search
        accepts only steps that lower the objective. Returns L (d, d).
        """
        title, tol, max_iter = type(self).__name__, self.tol, self.max_iter
        shape = (n_dimensions, n_dimensions)
        values: list[float] = []

        def flat(x: Floats) -> tuple[float, Floats]:
            value, gradient = objective(x.reshape(shape))
            if not values:
                values.append(value)
            return value, gradient.ravel()

        with progress(title, max_iter) as advance:

            def note(intermediate_result: OptimizeResult) -> None:
                values.append(float(intermediate_result.fun))
                advance(1)

            x, norm = np.eye(n_dimensions).ravel(), np.inf
            # Two values that rounding makes equal end L-BFGS; without its memory it may go on.
            for _ in range(2):
                left = max_iter - max(0, len(values) - 1)
                if norm <= tol or left == 0:
                    break
                options: dict[str, Any] = {"maxiter": left, "maxfun": 20 * left}
                options |= {"gtol": tol, "ftol": 0.0, "maxcor": MEMORY}
                end: Any = minimize(  # type: ignore[call-overload]
                    flat, x, jac=True, method="L-BFGS-B", callback=note, options=options
                )
                x, norm = end.x, float(np.abs(end.jac).max())
        self.objective_, self.n_iter_ = np.array(values), len(values) - 1
        self.gradient_norm_, self.converged_ = norm, norm <= tol
        if not self.converged_:
            warnings.warn(
                f"{title} stopped after {self.n_iter_} iterations with a gradient of {norm:.2g}, "
                f"above tol={tol:g}; raise max_iter (now {max_iter}) or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return x.reshape(shape)
