"""Integrated gradients of a kernel metric's distance, from products with the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.kernels import Kernel, inner_products

Floats = NDArray[np.float64]

_NODES = 32  # of the quadrature: the parts add up to about 1e-9 of the distance


@dataclass(frozen=True)
class View:
    """One kernel of a sum: of inner products sum_f scale_f x_f z_f, counted with a weight."""

    kernel: Kernel
    scale: Any = 1.0  # number or array (n_features,), not negative
    weight: float = 1.0


class _Path:
    """Pairs (a, b) in one view as midpoint m and difference D = a - b: all products needed."""

    def __init__(self, view: View, Z: NDArray[Any], middle: Floats, difference: Floats) -> None:
        self.kernel = view.kernel
        scale = np.broadcast_to(np.asarray(view.scale, np.float64), Z.shape[1:])
        scaled_middle, scaled_difference = middle * scale, difference * scale
        self.middle_rows = inner_products(scaled_middle, Z)  # m . z, (n, N)
        self.difference_rows = inner_products(scaled_difference, Z)  # D . z, (n, N)
        self.middle_squares = np.einsum("ij,ij->i", scaled_middle, middle)  # (n,)
        self.crossed = np.einsum("ij,ij->i", scaled_middle, difference)  # m . D, (n,)
        self.difference_squares = np.einsum("ij,ij->i", scaled_difference, difference)  # (n,)
        # z . z, (N,)
        self.row_squares = np.array([np.square(row, dtype=np.float64) @ scale for row in Z])

    def at(self, t: float) -> tuple[Floats, Any, Any]:
        """Kernel values (n, N) at x = m + t D / 2, and their derivatives by x.z and by x.x."""
        kernel = self.kernel
        products = self.middle_rows + (t / 2.0) * self.difference_rows
        if kernel.kernel == "linear":
            return products, 1.0, 0.0
        gamma = float(kernel.gamma_ or 0.0)
        if kernel.kernel == "poly":
            inside = gamma * products + kernel.coef0
            slope = kernel.degree * gamma * inside ** (kernel.degree - 1)
            return inside**kernel.degree, slope, 0.0
        squares = self.middle_squares + t * self.crossed
        squares = squares + (t * t / 4.0) * self.difference_squares  # x . x, (n,)
        apart = np.maximum(squares[:, None] + self.row_squares - 2.0 * products, 0.0)
        if kernel.kernel == "rbf":
            values = np.exp(-gamma * apart)
            return values, 2.0 * gamma * values, -gamma * values
        lengths = np.sqrt(apart)  # "exp"
        values = np.exp(-gamma * lengths)
        slope = gamma * values / np.maximum(lengths, np.finfo(np.float64).eps)
        return values, slope, -slope / 2.0


def integrated_gradients(
    views: Sequence[View], Z: NDArray[Any], C: Floats, A: Floats, B: Floats
) -> Floats:
    """Divide the distances of pairs of rows among the features, (n_pairs, n_features).

    The weighted sum of the views is the kernel k; the embedding of x is k(x, Z) C with training
    rows Z (N, n_features) and C (N, n_components).

    The path moves both rows from their midpoint m, where their distance is zero, apart to a and
    b: m + t D / 2 and m - t D / 2, D = a - b, t from 0 to 1. The gradient of the distance
    along it, integrated and multiplied feature by feature with the way, adds up to the distance
    (completeness; Sundararajan, Taly and Yan, "Axiomatic attribution for deep networks", ICML
    2017). For the linear kernel it is the exact decomposition. Gradients are sums of training
    rows whose weights are added up over the nodes first, so any number of nodes costs two
    products with the training rows and one back.
    """
    middle, difference = (A + B) / 2.0, A - B
    paths = [_Path(view, Z, middle, difference) for view in views]
    # Of each view the gradient is rows @ Z + of_middle m + of_difference D.
    rows = np.zeros((len(views), len(A), len(Z)))
    of_middle, of_difference = np.zeros((2, len(views), len(A), 1))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)  # on [-1, 1]
    for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        ends = [(path.at(t), path.at(-t)) for path in paths]
        change = sum(view.weight * (a[0] - b[0]) for view, (a, b) in zip(views, ends, strict=True))
        slope = weight * ((change @ C) @ C.T)  # (n, N): half the gradient by kernel values
        for i, (view, (a, b)) in enumerate(zip(views, ends, strict=True)):
            v = view.weight * slope
            rows[i] += v * (a[1] + b[1])
            of_middle[i] += 2.0 * np.sum(v * (a[2] + b[2]), axis=1, keepdims=True)
            of_difference[i] += t * np.sum(v * (a[2] - b[2]), axis=1, keepdims=True)
    contributions = np.zeros_like(middle)
    for i, view in enumerate(views):
        gradient = times_rows(rows[i], Z) + of_middle[i] * middle + of_difference[i] * difference
        contributions += difference * gradient * view.scale
    return contributions


def times_rows(weights: Floats, Z: NDArray[Any], at_once: int = 2048) -> Floats:
    """Return weights @ Z in float64 without a second copy of Z, (n, n_features)."""
    product = np.empty((len(weights), Z.shape[1]))
    for start in range(0, Z.shape[1], at_once):
        columns = slice(start, start + at_once)
        product[:, columns] = weights @ Z[:, columns].astype(np.float64, copy=False)
    return product
