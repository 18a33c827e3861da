"""Integrated gradients of a kernel metric's distance, from products with the training rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.kernels import Kernel, inner_products, row_squares
from resight.learners._base import KernelMetricLearner

Floats = NDArray[np.float64]

_NODES = (8, 16, 32, 64, 128)  # of the quadrature, until the parts add up
_COMPLETE = 1e-9  # relative difference of sum and distance at which they do
_COLUMNS_AT_ONCE = 2048
_TINY = 1e-12


class _Path(NamedTuple):
    """Pairs (a, b) as midpoint m and difference D = a - b, with all products that are needed."""

    middle: Floats  # (n, n_features)
    difference: Floats  # (n, n_features)
    middle_rows: Floats  # m . z, (n, N)
    difference_rows: Floats  # D . z, (n, N)
    middle_squares: Floats  # (n,)
    crossed: Floats  # m . D, (n,)
    difference_squares: Floats  # (n,)
    row_squares: Floats  # z . z, (N,)


class _Sums(NamedTuple):
    """What the quadrature adds up: the gradient is rows @ Z + middle * m + difference * D."""

    rows: Floats  # (n, N)
    middle: Floats  # (n,)
    difference: Floats  # (n,)

    def totals(self, path: _Path) -> Floats:
        """Sum of all contributions of each pair, without forming them, (n,)."""
        along = np.einsum("ij,ij->i", self.rows, path.difference_rows)
        return along + self.middle * path.crossed + self.difference * path.difference_squares


def integrated_gradients(learner: KernelMetricLearner, A: Floats, B: Floats) -> Floats:
    """Divide the distances of pairs of rows among the features, (n_pairs, n_features).

    Notes
    -----
    The path moves both rows from their midpoint m, where their distance is zero, apart to a and
    b: m + t D / 2 and m - t D / 2, D = a - b, t from 0 to 1. The gradient of the distance
    along it, integrated and multiplied feature by feature with the way, adds up to the distance
    (completeness; Sundararajan, Taly and Yan, "Axiomatic attribution for deep networks", ICML
    2017). For the linear kernel it is the exact decomposition. Gradients are sums of training
    rows whose weights are added up over the nodes first, so any number of nodes costs two
    products with the training rows and one back.
    """
    Z = np.asarray(learner.X_fit_)
    middle, difference = (A + B) / 2.0, A - B
    path = _Path(
        middle,
        difference,
        inner_products(middle, Z),
        inner_products(difference, Z),
        row_squares(middle),
        np.einsum("ij,ij->i", middle, difference),
        row_squares(difference),
        row_squares(Z),
    )
    sums = _integrate(learner.kernel_, learner.coef_, path)
    gradient = times_rows(sums.rows, Z)
    gradient += sums.middle[:, None] * middle + sums.difference[:, None] * difference
    return difference * gradient


def times_rows(weights: Floats, Z: NDArray[Any]) -> Floats:
    """Return weights @ Z in float64 without a second copy of Z, (n, n_features)."""
    product = np.empty((len(weights), Z.shape[1]))
    for start in range(0, Z.shape[1], _COLUMNS_AT_ONCE):
        columns = slice(start, start + _COLUMNS_AT_ONCE)
        product[:, columns] = weights @ Z[:, columns].astype(np.float64, copy=False)
    return product


def _integrate(kernel: Kernel, C: Floats, path: _Path) -> _Sums:
    """Add nodes until the parts of every pair add up to its distance."""
    at_end = _values(kernel, path, 1.0, +1)[0] - _values(kernel, path, 1.0, -1)[0]
    distances = row_squares(at_end @ C)
    for n_nodes in _NODES:
        sums = _quadrature(kernel, C, path, n_nodes)
        if np.all(abs(sums.totals(path) - distances) <= _COMPLETE * distances):
            break
    return sums


def _quadrature(kernel: Kernel, C: Floats, path: _Path, n_nodes: int) -> _Sums:
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)  # on [-1, 1]
    rows = np.zeros_like(path.middle_rows)
    middle, difference = np.zeros((2, len(rows)))
    for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        k_a, by_product_a, by_square_a = _values(kernel, path, t, +1)
        k_b, by_product_b, by_square_b = _values(kernel, path, t, -1)
        w = weight * (((k_a - k_b) @ C) @ C.T)  # (n, N): half the gradient by kernel values
        rows += w * (by_product_a + by_product_b)
        middle += 2.0 * np.sum(w * (by_square_a + by_square_b), axis=1)
        difference += t * np.sum(w * (by_square_a - by_square_b), axis=1)
    return _Sums(rows, middle, difference)


def _values(kernel: Kernel, path: _Path, t: float, side: int) -> tuple[Floats, Any, Any]:
    """Kernel values (n, N) at x = m + side t D / 2, and their derivatives by x.z and by x.x."""
    products = path.middle_rows + (side * t / 2.0) * path.difference_rows
    squares = (
        path.middle_squares + side * t * path.crossed + (t * t / 4.0) * path.difference_squares
    )
    if kernel.kernel == "linear":
        return products, 1.0, 0.0
    gamma = kernel._fitted_gamma()
    if kernel.kernel == "poly":
        inside = gamma * products + kernel.coef0
        slope = kernel.degree * gamma * inside ** (kernel.degree - 1)
        return inside**kernel.degree, slope, 0.0
    apart = np.maximum(squares[:, None] + path.row_squares - 2.0 * products, 0.0)
    if kernel.kernel == "rbf":
        values = np.exp(-gamma * apart)
        return values, 2.0 * gamma * values, -gamma * values
    lengths = np.sqrt(apart)  # "exp"
    values = np.exp(-gamma * lengths)
    slope = gamma * values / np.maximum(lengths, _TINY)
    return values, slope, -slope / 2.0
