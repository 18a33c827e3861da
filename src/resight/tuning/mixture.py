"""What a fitted mixture of metrics computes, for `AutoKXQDA` and for searches without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import Floats, Kernel, inner_products, row_squares
from resight.learners._blocks import block_slices, normalized
from resight.tuning.candidates import Candidate
from resight.tuning.sketch import shortened


class RowProducts(NamedTuple):
    """Inner products of some rows with the training rows, in one descriptor."""

    products: Floats  # (n, N)
    squares: Floats  # (n,): squared norms of the rows
    train_squares: Floats  # (N,): squared norms of the training rows


@dataclass
class FusedKernel:
    """One kernel over several descriptors: of all side by side, or the `mean` of one for each.

    The mean is weighted, after each kernel was brought to the same spread. A descriptor of weight 0
    is never asked for.
    """

    weights: list[float]  # one for each descriptor
    mean: bool
    of: list[Kernel]  # one, or one for each descriptor that counts

    @classmethod
    def unfitted(cls, candidates: Sequence[Candidate], weights: Sequence[float]) -> FusedKernel:
        """Take kernels and widths of one candidate, or of one for each descriptor."""
        mean = len(candidates) > 1
        used = [one for one, weight in zip(candidates, weights, strict=False) if weight or not mean]
        kernels = [Kernel(**one.kernel_params()) for one in used]
        return cls([float(weight) for weight in weights], mean, kernels)

    @property
    def _used(self) -> list[int]:
        return [i for i, weight in enumerate(self.weights) if weight]

    def fit(self, products: Callable[[int], Floats]) -> Floats:
        """Learn bandwidths and spreads and return the training matrix, (N, N).

        `products` returns the inner products (N, N) of the training rows in a descriptor.
        """
        if not self.mean:
            return self.of[0].fit_products(self._sum(products))
        matrices = {
            i: kernel.fit_products(products(i).copy())
            for i, kernel in zip(self._used, self.of, strict=True)
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
            return self.of[0].of_products(products, squares, train_squares)
        matrices = {}
        for i, kernel in zip(self._used, self.of, strict=True):
            products, squares, train_squares = given(i)
            matrices[i] = kernel.of_products(products.copy(), squares, train_squares)
        return self._sum(matrices.__getitem__) / sum(self.weights)

    def _sum(self, of: Callable[[int], Floats]) -> Floats:
        """Weighted sum over descriptors, as a new array."""
        first, *others = self._used
        total: Floats = self.weights[first] * of(first)
        for i in others:
            total += self.weights[i] * of(i)
        return total


def _spread(K: Floats) -> float:
    """Mean squared distance of the rows to their mean; 1 where all rows are equal."""
    spread = float(K.diagonal().mean() - K.mean())
    return spread if spread > 1e-12 * float(np.abs(K.diagonal()).max()) else 1.0


def embed(fitted: Any, X: Floats) -> Floats:
    """Embed rows X (n, n_features) by the learned attributes of an `AutoKXQDA`."""
    mean, blocks = fitted.normalizer_.mean_, fitted.normalizer_.blocks
    rows = normalized(X, mean, blocks)
    known: dict[tuple[int, int], RowProducts] = {}

    def products(ends: list[int], i: int) -> RowProducts:
        start, stop = ends[i], ends[i + 1]
        if (start, stop) not in known:
            new, old = rows[:, start:stop], fitted.X_fit_[:, start:stop]
            of_columns = RowProducts(inner_products(new, old), row_squares(new), row_squares(old))
            known[start, stop] = of_columns
        return known[start, stop]

    parts = []
    for kernel, coef, offset in zip(fitted.kernels_, fitted.coefs_, fitted.offsets_, strict=True):
        if "plain" in kernel:
            cosine = kernel["plain"] != "euclidean"
            given = normalized(X, np.zeros_like(mean), blocks) if cosine else rows
            parts.append(np.multiply(coef, _unlearned(fitted, given, kernel)))
        else:
            own = {"ends": fitted.ends_, **kernel}  # what its weights are for
            of_columns = partial(products, own.pop("ends"))
            parts.append(FusedKernel(**own).rows(of_columns) @ coef - offset)
    return np.concatenate(parts, axis=1)


def _unlearned(fitted: Any, rows: NDArray[Any], kernel: dict[str, Any]) -> NDArray[Any]:
    """Weigh descriptors; models from before vectors could be `whole` have them shortened."""
    parts = []
    for i, weight in enumerate(kernel["weights"]):
        columns = rows[:, fitted.ends_[i] : fitted.ends_[i + 1]] if weight else rows[:, :0]
        widths = descriptor_blocks(fitted.blocks, rows.shape[1])[i]
        slices = block_slices(widths, sum(widths)) if weight else []
        for block in (columns[:, one] for one in slices):
            short = block if kernel.get("whole") else shortened(block, len(widths))
            parts.append(np.sqrt(weight) * short)
    return np.concatenate(parts, axis=1)


def descriptor_blocks(blocks: Sequence[Sequence[int]] | None, width: int) -> list[tuple[int, ...]]:
    """Return the widths of the blocks of each descriptor; they must add up to the features."""
    if blocks is None:
        return [(width,)]
    try:
        descriptors = [tuple(map(int, widths)) for widths in blocks]
    except TypeError:
        raise InputError(
            f"blocks={blocks!r}; give the widths of the blocks of each descriptor, such as "
            f"[({width},)] for one descriptor of one block"
        ) from None
    total = sum(map(sum, descriptors))
    if total != width:
        raise InputError(
            f"blocks add up to {total} features, but X has {width}; give the blocks of all "
            "descriptors, in the order of their columns"
        )
    return descriptors
