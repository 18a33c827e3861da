"""Gram space: one matrix of inner products per block serves every split, kernel and learner.

Centring by the training mean, L2 normalisation of blocks and the kernels that are functions of
inner products need only inner products. The Gram matrix of all sightings of a dataset is
therefore computed once; each split, width, regulariser and learner starts from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import OF_PRODUCTS, Kernel, inner_products
from resight.learners._base import KernelMetricLearner, MetricLearner
from resight.learners.normalizer import block_slices
from resight.learners.xqda import span_coordinates

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Products:
    """Inner products of one split after normalisation.

    Attributes
    ----------
    train : array (N, N)
        Between training rows.
    test : array (n, N)
        Of test rows against training rows.
    test_squares : array (n,)
        Squared norms of test rows.
    test_self : array (n, n) or None
        Between test rows, where asked for.
    """

    train: Floats
    test: Floats
    test_squares: Floats
    test_self: Floats | None = None


class GramSpace:
    """Inner products between all sightings, block by block.

    Parameters
    ----------
    features : sequence of arrays (n, d_i)
        Descriptors put side by side.
    blocks : sequence of int, optional
        Widths to normalise separately, over all features; by default one block each.
    precision : "float32" or "float64"
        Arithmetic of the products.
    """

    def __init__(
        self,
        features: Sequence[NDArray[Any]],
        blocks: Sequence[Sequence[int] | None] | None = None,
        precision: str = "float32",
    ) -> None:
        widths = [None] * len(features) if blocks is None else blocks
        self.grams: list[Floats] = []  # one (n, n) for each block
        self.groups: list[int] = []  # how many of them belong to each of `features`
        for rows, its_blocks in zip(features, widths, strict=True):
            self.groups.append(len(block_slices(its_blocks, rows.shape[1])))
            for block in block_slices(its_blocks, rows.shape[1]):
                part = rows[:, block]
                if not np.isfinite(part).all():
                    raise InputError("features hold NaN or infinite values; extract them again")
                self.grams.append(inner_products(part, part, precision))

    def __len__(self) -> int:
        return len(self.grams[0])

    @classmethod
    def joined(cls, spaces: Iterable[GramSpace]) -> GramSpace:
        """Put descriptors side by side: their blocks are listed one after the other."""
        whole = cls([])
        for space in spaces:
            whole.grams += space.grams
            whole.groups += space.groups
        return whole

    def products(
        self,
        train: Rows,
        test: Rows,
        *,
        normalize: bool = True,
        weights: Sequence[float] | None = None,
        between_test: bool = False,
    ) -> Products:
        """Return inner products of a split, normalised as `BlockNormalizer` would.

        `weights` multiplies the blocks' products (each by its own non-negative number);
        `between_test` asks for the products between test rows as well.
        """
        n = len(train)
        rows = np.concatenate([train, test])
        columns = rows if between_test else train
        total = np.zeros((len(rows), len(columns)))
        squares = np.zeros(len(rows))
        for i, gram in enumerate(self.grams):
            weight = 1.0 if weights is None else float(weights[i])
            part, own = gram[np.ix_(rows, columns)], gram[rows, rows]
            if normalize:
                own = _normalise(part, own, n)
            total += weight * part
            squares += weight * own
        test_self = total[n:, n:] if between_test else None
        return Products(total[:n, :n], total[n:, :n], squares[n:], test_self)


def _normalise(part: Floats, own: Floats, n: int) -> Floats:
    """Centre by the mean of the first `n` rows and divide by norms; return the squared norms.

    `part` holds products of all rows with the first columns of the same rows, `own` the rows'
    squared norms; `part` is changed in place.
    """
    with_mean = part[:, :n].mean(axis=1)  # x . mean
    of_mean = with_mean[:n].mean()  # mean . mean
    part -= with_mean[:, None]
    part -= with_mean[None, : part.shape[1]]
    part += of_mean
    own = np.maximum(own - 2.0 * with_mean + of_mean, 0.0)
    scale = np.zeros_like(own)
    # Below round-off a row is the mean itself: it stays zero, as in BlockNormalizer.
    np.divide(1.0, np.sqrt(own), out=scale, where=own > 1e-7 * own.max())
    part *= scale[:, None]
    part *= scale[None, : part.shape[1]]
    normalised: Floats = own * scale**2
    return normalised


def fit_in_gram_space(
    learner: MetricLearner, products: Products, persons: NDArray[Any], cameras: NDArray[Any] | None
) -> tuple[MetricLearner, Floats]:
    """Fit a learner on a split and return it with what `distances` takes for the test rows.

    A kernel learner gets its kernel matrix as "precomputed"; any other gets exact coordinates of
    the rows in the span of the training rows, in which every inner product with a training row
    is unchanged.
    """
    if isinstance(learner, KernelMetricLearner):
        return _fit_kernel_learner(learner, products, persons, cameras)
    coordinates, lift = span_coordinates(products.train)
    learner.fit(coordinates, persons, cameras)
    return learner, products.test @ lift


def _fit_kernel_learner(
    learner: KernelMetricLearner,
    products: Products,
    persons: NDArray[Any],
    cameras: NDArray[Any] | None,
) -> tuple[MetricLearner, Floats]:
    if learner.kernel not in OF_PRODUCTS:
        raise InputError(
            f"kernel {learner.kernel!r} is not a function of inner products, so it cannot be "
            f"evaluated on stored Gram matrices; use one of {', '.join(OF_PRODUCTS)}"
        )
    kernel = Kernel(
        learner.kernel,
        gamma=learner.gamma,
        width=learner.width,
        degree=learner.degree,
        coef0=learner.coef0,
    )
    train_squares = products.train.diagonal().copy()
    K = kernel.fit_products(products.train.copy())
    rows = kernel.of_products(products.test.copy(), products.test_squares, train_squares)
    learner.set_params(kernel="precomputed")
    learner.fit(K, persons, cameras)
    return learner, rows
