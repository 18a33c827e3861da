"""Gram space: one matrix of inner products per block serves every split, kernel and learner.

Centring by the training mean, L2 normalisation of blocks and the kernels that are functions of
inner products need only inner products. The Gram matrix of all sightings of a dataset is
therefore computed once; each split, width, regulariser and learner starts from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import OF_PRODUCTS, Floats, inner_products, row_squares
from resight.learners._base import KernelMetricLearner, MetricLearner, squared_euclidean
from resight.learners._blocks import block_slices
from resight.learners.xqda import span_coordinates
from resight.tuning.sketch import shortened

if TYPE_CHECKING:
    from resight.features.store import Features

Rows = NDArray[np.intp]
Between = Callable[[Rows, Rows], Floats]
"""Takes places of test rows (queries, gallery); returns the distances between them."""
_ZERO = 3e-4  # of the largest norm: round-off of float32 leaves so much of a row that is the mean


@dataclass(frozen=True)
class Products:
    """Inner products of one split after normalisation."""

    train: Floats  # (N, N): between training rows
    test: Floats  # (n, N): of test rows against training rows
    test_squares: Floats  # (n,): squared norms of test rows
    test_self: Floats | None = None  # (n, n): between test rows, where asked for


class Block(NamedTuple):
    """Inner products of one block of a descriptor, and where its vectors are."""

    gram: Floats  # (n, n) or (n_trainable, n)
    squares: Floats  # (n,): squared norms
    short: NDArray[Any]  # (n, k): see `shortened`
    features: NDArray[Any]  # the descriptor, read again where vectors keep their full length
    rows: Rows | None  # those of `features` that count, None for all
    columns: slice

    def only(self, rows: Rows, places: Rows) -> Block:
        """Copy what is between some rows; `places` are theirs in `gram`."""
        kept = rows if self.rows is None else self.rows[rows]
        gram, short = self.gram[np.ix_(places, rows)], self.short[rows]
        return Block(gram, self.squares[rows], short, self.features, kept, self.columns)

    def vectors(self, rows: Rows, whole: bool) -> Floats:
        """Return the vectors of some rows, shortened or `whole`."""
        if not whole:
            return self.short[rows].astype(np.float64)
        places = rows if self.rows is None else self.rows[rows]
        return np.asarray(self.features[places, self.columns], np.float64)


class GramSpace:
    """Inner products between all sightings, block by block.

    `features` are descriptors (n, d_i) put side by side, `blocks` the widths of each to normalise
    separately (by default one block each). `trainable` are the rows that some split learns from,
    ascending (by default all): products between the others, distractors, are not formed. `usable`
    says which rows count at all, by default every one.
    """

    def __init__(
        self,
        features: Sequence[NDArray[Any]],
        blocks: Sequence[Sequence[int] | None] | None = None,
        precision: str = "float32",
        trainable: Rows | None = None,
        usable: NDArray[np.bool_] | None = None,
    ) -> None:
        self.trainable = trainable
        self.parts: list[list[Block]] = []  # the blocks of each of `features`
        self.networks = [False] * len(features)  # which of `features` a trained network made
        kept = None if usable is None or usable.all() else np.flatnonzero(usable)
        widths = [None] * len(features) if blocks is None else blocks
        for whole, its_blocks in zip(features, widths, strict=True):
            rows, part = whole if kept is None else whole[kept], []
            slices = block_slices(its_blocks, rows.shape[1])
            for columns in slices:
                gram, squares = self._products(rows[:, columns], precision)
                if not np.isfinite(squares).all():
                    raise InputError("features hold NaN or infinite values; extract them again")
                short = shortened(rows[:, columns], len(slices))
                part.append(Block(gram, squares, short, whole, kept, columns))
            self.parts.append(part)

    def _products(self, part: NDArray[Any], precision: str) -> tuple[Floats, Floats]:
        """Return inner products of the trainable rows with all, and all squared norms."""
        if self.trainable is None or len(self.trainable) == len(part):
            gram = inner_products(part, part, precision)
            return gram, gram.diagonal().copy()
        learned, n = part[self.trainable], len(part)
        others = np.setdiff1d(np.arange(n), self.trainable)
        gram, squares = np.empty((len(learned), n)), np.empty(n)
        among = inner_products(learned, learned, precision)  # half the work of two matrices
        gram[:, self.trainable], squares[self.trainable] = among, among.diagonal()
        gram[:, others] = inner_products(learned, part[others], precision)
        squares[others] = row_squares(part[others])
        return gram, squares

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all descriptors, one after the other."""
        return [block for part in self.parts for block in part]

    def __len__(self) -> int:
        return len(self.parts[0][0].squares)

    def _made_of(self, parts: list[list[Block]], networks: list[bool]) -> GramSpace:
        made = GramSpace([], trainable=self.trainable)
        made.parts, made.networks = parts, networks
        return made

    @classmethod
    def joined(cls, spaces: Iterable[GramSpace]) -> GramSpace:
        """Put descriptors side by side: their blocks are listed one after the other."""
        every = list(spaces)
        parts = [part for space in every for part in space.parts]
        return every[0]._made_of(parts, [one for space in every for one in space.networks])

    def descriptors(self) -> list[GramSpace]:
        """Return each descriptor as a space of its own, sharing its matrices."""
        each = zip(self.parts, self.networks, strict=True)
        return [self._made_of([part], [network]) for part, network in each]

    def by_block(self) -> list[GramSpace]:
        """Return each block as a space of its own, sharing its matrices."""
        return [self._made_of([[block]], [False]) for block in self.blocks]

    def only(self, rows: Rows) -> GramSpace:
        """Copy the products between some rows: nothing else can be looked at by accident."""
        places = self._places(rows)
        made = GramSpace([])
        made.parts = [[block.only(rows, places) for block in part] for part in self.parts]
        made.networks = list(self.networks)
        return made

    def products(
        self, train: Rows, test: Rows, *, normalize: bool = True, between_test: bool = False
    ) -> Products:
        """Return inner products of a split, normalised as `BlockNormalizer` would.

        `between_test` asks for the products between test rows as well.
        """
        wanted = np.concatenate([train, test]) if between_test else train
        total = np.zeros((len(wanted), len(self)))
        squares = np.zeros(len(self))
        for block in self.blocks:
            part, own = block.gram.take(self._places(wanted), axis=0), block.squares
            squares += _normalise(part, own, wanted, train) if normalize else own
            total += part
        n = len(train)
        test_self = total[n:, test] if between_test else None
        return Products(total[:n, train], total[:n, test].T, squares[test], test_self)

    def plain(self, train: Rows, test: Rows, *, centred: bool, whole: bool = False) -> Floats:
        """Vectors of test rows, shortened or `whole`, each block divided by its norm.

        They are centred by the training rows first, as `BlockNormalizer` does, or not (cosine).
        """
        parts = []
        for block in self.blocks:
            rows, norms = block.vectors(test, whole), block.squares[test]
            if centred:
                among = block.gram[self._places(train)]
                norms = norms - 2.0 * among[:, test].mean(axis=0) + among[:, train].mean()
                rows -= block.vectors(train, whole).mean(axis=0)
            norms = np.sqrt(np.maximum(norms, 0.0))[:, None]
            known = norms > _ZERO * np.sqrt(block.squares[train].max())
            parts.append(np.divide(rows, norms, out=np.zeros_like(rows), where=known))
        return np.concatenate(parts, axis=1)

    def _places(self, rows: Rows) -> Rows:
        """Where the products of these rows with all others are kept."""
        if self.trainable is None:
            return rows
        places: Rows = np.searchsorted(self.trainable, rows)
        known = np.minimum(places, len(self.trainable) - 1)
        if not np.array_equal(self.trainable[known], rows):
            raise ValueError("products with rows outside `trainable` were not formed")
        return places


def _normalise(part: Floats, own: Floats, wanted: Rows, train: Rows) -> Floats:
    """Centre by the mean of the training rows, divide by norms; return all squared norms (n,).

    `part` holds products of the `wanted` rows, of which `train` are the first, with all rows, and
    is changed in place; `own` are the squared norms of all rows.
    """
    with_mean = part[: len(train)].mean(axis=0)  # x . mean
    of_mean = with_mean[train].mean()  # mean . mean
    part -= with_mean
    part -= (with_mean[wanted] - of_mean)[:, None]
    own = np.maximum(own - 2.0 * with_mean + of_mean, 0.0)
    scale = np.zeros_like(own)
    # Below round-off a row is the mean itself: it stays zero, as in BlockNormalizer.
    np.divide(1.0, np.sqrt(own), out=scale, where=own > 1e-7 * own[train].max())
    part *= scale
    part *= scale[wanted][:, None]
    return own * scale**2


def fit_in_gram_space(
    learner: MetricLearner, products: Products, persons: NDArray[Any], cameras: NDArray[Any] | None
) -> tuple[MetricLearner, Floats]:
    """Fit a learner on a split and return it with what `distances` takes for the test rows.

    A kernel learner gets its kernel matrix as "precomputed"; any other gets exact coordinates of
    the rows in the span of the training rows, in which every inner product with a training row
    is unchanged.
    """
    if not isinstance(learner, KernelMetricLearner):
        coordinates, lift = span_coordinates(products.train)
        return learner.fit(coordinates, persons, cameras), products.test @ lift
    if learner.kernel not in OF_PRODUCTS:
        raise InputError(
            f"kernel {learner.kernel!r} is not a function of inner products, so it cannot be "
            f"evaluated on stored Gram matrices; use one of {', '.join(OF_PRODUCTS)}"
        )
    kernel, squares = learner.unfitted_kernel(), products.train.diagonal()
    K = kernel.fit_products(products.train.copy())
    rows = kernel.of_products(products.test.copy(), products.test_squares, squares)
    learner.set_params(kernel="precomputed")
    return learner.fit(K, persons, cameras), rows


def gram_space(
    features: Features, usable: np.ndarray[Any, Any] | None = None, trainable: Rows | None = None
) -> GramSpace:
    """Gram matrices of stored features, block by block, optionally of some rows only."""
    space = GramSpace(features.parts, features.blocks_of_parts, trainable=trainable, usable=usable)
    space.networks = features.networks
    return space


def between_test_rows(
    learner: MetricLearner, products: Products, persons: NDArray[Any], cameras: NDArray[Any]
) -> Between:
    """Fit, and return what gives the distances between test rows of a split."""
    if products.test_self is not None:
        squares = products.test_squares
        return lookup(squares[:, None] + squares[None, :] - 2.0 * products.test_self)
    fitted, rows = fit_in_gram_space(learner, products, persons, cameras)
    try:
        embedding = fitted.transform(rows)
    except InputError:  # an indefinite metric has distances, but no embedding
        return lambda a, b: fitted.distances(rows[a], rows[b])
    return within(embedding)


def within(embedding: Floats) -> Between:
    """Turn embeddings of all test rows into what `rank_directions` asks."""
    return lambda a, b: squared_euclidean(embedding[a], embedding[b])


def lookup(distances: Floats) -> Between:
    """Turn a matrix between all test rows into what `rank_directions` asks."""
    return lambda a, b: distances[np.ix_(a, b)]
