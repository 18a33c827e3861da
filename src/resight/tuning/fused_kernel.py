"""One kernel over several descriptors: of their weighted sum, or the mean of one for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.kernels import Kernel
from resight.tuning.candidates import Candidate

Floats = NDArray[np.float64]


class RowProducts(NamedTuple):
    """Inner products of some rows with the training rows, in one descriptor.

    Attributes
    ----------
    products : array (n, N)
    squares : array (n,)
        Squared norms of the rows.
    train_squares : array (N,)
        Squared norms of the training rows.
    """

    products: Floats
    squares: Floats
    train_squares: Floats


class FusedKernel:
    """A kernel of the products of several descriptors.

    Parameters
    ----------
    candidate : Candidate
        Name and width of the kernel; its regulariser is not looked at.
    weights : sequence of float
        One for each descriptor, not negative. A descriptor of weight 0 is never asked for.
    mean : bool
        Whether each descriptor gets its own kernel, with its own bandwidth, and the weighted mean
        is taken. Otherwise there is one kernel of the weighted sum of products, which is that of
        the descriptors side by side.
    """

    def __init__(self, candidate: Candidate, weights: Sequence[float], mean: bool) -> None:
        self.weights = [float(weight) for weight in weights]
        self.mean = mean
        self.kernels = [
            Kernel(**candidate.kernel_params()) for _ in range(len(self.used) if mean else 1)
        ]

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
        """Learn bandwidths and return the training matrix, (N, N).

        `products` returns the inner products (N, N) of the training rows in a descriptor.
        """
        if not self.mean:
            return self.kernels[0].fit_products(self._sum(products))
        matrices = {
            i: kernel.fit_products(products(i).copy())
            for i, kernel in zip(self.used, self.kernels, strict=True)
        }
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
