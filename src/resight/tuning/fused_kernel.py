"""One kernel over several descriptors: of all side by side, or the sum of one for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from resight.kernels import Floats, Kernel
from resight.tuning.candidates import Candidate


class RowProducts(NamedTuple):
    """Inner products of some rows with the training rows, in one descriptor."""

    products: Floats  # (n, N)
    squares: Floats  # (n,): squared norms of the rows
    train_squares: Floats  # (N,): squared norms of the training rows


class FusedKernel:
    """A kernel of the products of several descriptors.

    Of the candidates only kernels and widths count: one for all descriptors side by side, or one
    for each descriptor, whose weighted mean is taken after each was brought to the same spread. A
    descriptor of weight 0 is never asked for.
    """

    def __init__(self, candidates: Sequence[Candidate], weights: Sequence[float]) -> None:
        self.weights = [float(weight) for weight in weights]
        self.mean = len(candidates) > 1
        chosen = [candidates[i] for i in self.used] if self.mean else candidates[:1]
        self.kernels = [Kernel(**one.kernel_params()) for one in chosen]

    @classmethod
    def fitted(cls, weights: Sequence[float], mean: bool, of: list[Kernel]) -> FusedKernel:
        """Put together one that was fitted before."""
        made = cls.__new__(cls)
        made.weights, made.mean, made.kernels = list(weights), mean, of
        return made

    @property
    def used(self) -> list[int]:
        """Descriptors that count."""
        return [i for i, weight in enumerate(self.weights) if weight]

    def fit(self, products: Callable[[int], Floats]) -> Floats:
        """Learn bandwidths and spreads and return the training matrix, (N, N).

        `products` returns the inner products (N, N) of the training rows in a descriptor.
        """
        if not self.mean:
            return self.kernels[0].fit_products(self._sum(products))
        matrices = {
            i: kernel.fit_products(products(i).copy())
            for i, kernel in zip(self.used, self.kernels, strict=True)
        }
        for i, K in matrices.items():
            self.weights[i] /= _spread(K)
        return self._sum(matrices.__getitem__) / sum(self.weights)

    def rows(self, given: Callable[[int], RowProducts]) -> Floats:
        """Return the kernel values of rows against the training rows, (n, N)."""
        if not self.mean:
            products = self._sum(lambda i: given(i).products)
            squares = self._sum(lambda i: given(i).squares)
            train_squares = self._sum(lambda i: given(i).train_squares)
            return self.kernels[0].of_products(products, squares, train_squares)
        matrices = {}
        for i, kernel in zip(self.used, self.kernels, strict=True):
            products, squares, train_squares = given(i)
            matrices[i] = kernel.of_products(products.copy(), squares, train_squares)
        return self._sum(matrices.__getitem__) / sum(self.weights)

    def _sum(self, of: Callable[[int], Floats]) -> Floats:
        """Weighted sum over descriptors, as a new array."""
        first, *others = self.used
        total: Floats = self.weights[first] * of(first)
        for i in others:
            total += self.weights[i] * of(i)
        return total


def _spread(K: Floats) -> float:
    """Mean squared distance of the rows to their mean; 1 where all rows are equal."""
    spread = float(K.diagonal().mean() - K.mean())
    return spread if spread > 1e-12 * float(np.abs(K.diagonal()).max()) else 1.0
