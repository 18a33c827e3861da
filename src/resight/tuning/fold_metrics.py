"""One division into rows to learn from and rows to rank: fits settings, each piece once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resight.learners._base import squared_euclidean
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import direction_weights
from resight.learners.nfst import KernelNFST
from resight.tuning.gram import Floats, GramSpace, Products, Rows
from resight.tuning.mixture import FusedKernel, RowProducts
from resight.tuning.settings import PLAIN, Part, Setting

ONE_THREAD = 1000
"""Sightings up to which the threads of BLAS wait for each other longer than they work: the recipe
took 2.8 times as long with two of them on 160 sightings, 1.25 times on 1,000."""


@dataclass(frozen=True)
class Fitted:
    """A learned part that was fitted: its embedding is ``kernel rows @ coef - offset``.

    Distances are told in the mean squared distance between the embedded training rows, the `unit`,
    so that those of different learners can be added.
    """

    kernel: FusedKernel
    coef: Floats  # (N, b)
    offset: Floats  # (b,): mean of the training rows in the embedding
    unit: float

    def embed(self, products: Callable[[int], RowProducts]) -> Floats:
        """Embed rows of which `products` are known; squared distances are in units of `unit`."""
        return (self.kernel.rows(products) @ self.coef - self.offset) / np.sqrt(self.unit)


@dataclass(eq=False)
class Fold:
    """Rows to learn from and rows to rank.

    What settings share is computed once: products of a descriptor, the kernel matrix of
    consecutive parts that differ in learner or regulariser only, distances of a part. Only entries
    between the rows `train` and `test` of the spaces are looked at.
    """

    spaces: Sequence[GramSpace]  # one for each descriptor
    train: Rows  # (N,)
    test: Rows  # (n,)
    persons: Rows  # (N,)
    cameras: Rows | None  # (N,), None: every sighting counts as its own

    def __post_init__(self) -> None:
        self._products: dict[int, Products] = {}
        self._units: dict[tuple[Part, bool], float] = {}
        self._last: tuple[object, FusedKernel, KernelPencil] | None = None  # and what it is of

    @cached_property
    def pairs(self) -> CrossCameraPairs:
        """Pairs across cameras among the training rows."""
        cameras = None if self.cameras is None else codes_of(self.cameras)
        return CrossCameraPairs(codes_of(self.persons), cameras)

    def products(self, i: int) -> Products:
        """Return normalised inner products in descriptor i."""
        if i not in self._products:
            self._products[i] = self.spaces[i].products(self.train, self.test)
        return self._products[i]

    def embed(self, setting: Setting) -> Floats:
        """Fit a setting and embed the rows to rank: parts side by side, scaled by their weights."""
        whole = not setting.learns
        parts = [np.sqrt(weight) * self._embedded(part, whole) for weight, part in setting.parts]
        return np.concatenate(parts, axis=1)

    def distances(self, setting: Setting) -> Floats:
        """Fit a setting and return the distances between the rows to rank, (n, n)."""
        embedding = self.embed(setting)
        return squared_euclidean(embedding, embedding)

    def part_distances(self, part: Part) -> Floats:
        """Fit a part and return the distances between the rows to rank, (n, n)."""
        embedding = self._embedded(part)
        return squared_euclidean(embedding, embedding)

    def _embedded(self, part: Part, whole: bool = False) -> Floats:
        if part.learner in PLAIN:
            unit = self.plain_unit(part, whole)
            return self._plain(part, self.test, whole) / np.sqrt(unit)
        pieces = self.pieces(part)
        embedded = [fold.fit(one).embed(fold._row_products) for fold, one in pieces]
        return np.concatenate(embedded, axis=1) / np.sqrt(len(pieces))

    def pieces(self, part: Part) -> list[tuple[Fold, Part]]:
        """Return what is fitted for a part that learns: itself, or a part for each block."""
        if not part.blocks:
            return [(self, part)]
        counts = [len(space.blocks) for space in self.spaces]
        used = np.repeat(np.array(part.weights) > 0.0, counts)
        each = np.eye(len(used))[used].tolist()
        return [(self._by_block, Part(part.learner, tuple(one), part.kernels)) for one in each]

    @cached_property
    def _by_block(self) -> Fold:
        """The same rows with every block as a descriptor of its own."""
        blocks = [block for space in self.spaces for block in space.by_block()]
        return Fold(blocks, self.train, self.test, self.persons, self.cameras)

    def plain_unit(self, part: Part, whole: bool = False) -> float:
        """Mean squared distance between training rows under a part that learns nothing."""
        if (part, whole) not in self._units:
            rows = self._plain(part, self.train, whole)
            self._units[part, whole] = _mean_square(rows - rows.mean(axis=0))
        return self._units[part, whole]

    def fit(self, part: Part) -> Fitted:
        """Fit one part that learns."""
        key = part.weights, [one.kernel_params() for one in part.kernels]
        if self._last is None or self._last[0] != key:
            kernel = FusedKernel.unfitted(part.kernels, part.weights)
            K = kernel.fit(lambda i: self.products(i).train)
            pencil = self._last[2].of_kernel(K) if self._last else KernelPencil(K, self.pairs)
            self._last = key, kernel, pencil
        _, kernel, pencil = self._last
        coef = self._coefficients(part, pencil)
        embedded = pencil.K @ coef
        offset = embedded.mean(axis=0)
        return Fitted(kernel, coef, offset, _mean_square(embedded - offset))

    def _plain(self, part: Part, rows: Rows, whole: bool) -> Floats:
        centred = part.learner == "euclidean"
        parts = [
            np.sqrt(weight) * space.plain(self.train, rows, centred=centred, whole=whole)
            for weight, space in zip(part.weights, self.spaces, strict=True)
            if weight
        ]
        return np.concatenate(parts, axis=1)

    def _coefficients(self, part: Part, pencil: KernelPencil) -> Floats:
        with warnings.catch_warnings():
            # A setting that separates nothing simply scores low.
            warnings.simplefilter("ignore", RuntimeWarning)
            if part.learner == "knfst":
                nfst = KernelNFST(kernel="precomputed").fit(pencil.K, self.persons)
                return np.asarray(nfst.coef_)
            first = part.kernels[0]
            mu, Theta, _ = pencil.solve(first.reg, first.reg_form, keep=True)
            return Theta * direction_weights(mu)

    def _row_products(self, i: int) -> RowProducts:
        own = self.products(i)
        return RowProducts(own.test, own.test_squares, own.train.diagonal())


def _mean_square(centred: Floats) -> float:
    """Mean squared distance of all ordered pairs of rows, a row with itself included."""
    return 2.0 * float(np.einsum("ij,ij", centred, centred)) / len(centred) or 1.0


def threads_for(n_sightings: int) -> AbstractContextManager[object]:
    """Keep BLAS to one thread where there are no more than `ONE_THREAD` sightings."""
    return threadpool_limits(1 if n_sightings <= ONE_THREAD else None)


def codes_of(labels: NDArray[Any]) -> Rows:
    """Return labels as numbers 0, 1, 2, ... in sorted order."""
    return np.unique(labels, return_inverse=True)[1]
