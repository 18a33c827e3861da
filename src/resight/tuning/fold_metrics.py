"""One division into rows to learn from and rows to rank: fits settings, each piece once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.learners._base import squared_euclidean
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pencil import direction_weights
from resight.learners.kernel_nfst import KernelNFST
from resight.learners.xqda import XQDA, span_coordinates
from resight.tuning.candidates import AUTO_PAIR_PEOPLE
from resight.tuning.fused_kernel import FusedKernel, RowProducts
from resight.tuning.gram import GramSpace, Products
from resight.tuning.settings import Part, Setting

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class FittedPart:
    """A part that was fitted: its embedding is ``kernel rows @ coef``.

    Attributes
    ----------
    kernel : FusedKernel
    coef : array (N, b)
        Centred, so that training rows have mean 0 in the embedding.
    offset : array (b,)
    unit : float
        Mean squared distance between the embedded training rows: distances are told in it, so
        that those of different learners can be added.
    """

    kernel: FusedKernel
    coef: Floats
    offset: Floats
    unit: float

    def embed(self, rows: Floats) -> Floats:
        """Embed kernel rows (n, N); squared distances are in units of `unit`."""
        embedding: Floats = (rows @ self.coef - self.offset) / np.sqrt(self.unit)
        return embedding


class _KernelOf:
    """The kernel matrix of a part, and the pencil that all its regularisers share."""

    def __init__(self, part: Part, fold: Fold) -> None:
        self.key = _kernel_key(part)
        self.kernel = FusedKernel(part.candidate, part.weights, part.kernel_mean)
        self.K = self.kernel.fit(lambda i: fold.products(i).train)
        self.pencil = KernelPencil(self.K, fold.pairs)


class Fold:
    """Rows to learn from and rows to rank.

    What settings share is computed once: products of a descriptor, the kernel matrix of
    consecutive settings that differ in the regulariser only, distances of a part.

    Parameters
    ----------
    spaces : sequence of GramSpace
        One for each descriptor. Only entries between `train` and `test` are looked at.
    train, test : int arrays (N,), (n,)
        Rows of the spaces.
    persons, cameras : int arrays (N,)
        Codes of the training rows. Without cameras, every sighting counts as its own.
    test_cameras : int array (n,)
        Coded alike; needed for a metric per pair of cameras only.
    """

    def __init__(
        self,
        spaces: Sequence[GramSpace],
        train: Rows,
        test: Rows,
        persons: Rows,
        cameras: Rows | None,
        test_cameras: Rows | None = None,
    ) -> None:
        self.spaces = spaces
        self.train, self.test = train, test
        self.persons, self.cameras, self.test_cameras = persons, cameras, test_cameras
        self._products: dict[int, Products] = {}
        self._distances: dict[Part, Floats] = {}
        self._last: _KernelOf | None = None

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

    def distances(self, setting: Setting) -> Floats:
        """Fit a setting and return the distances between the rows to rank, (n, n)."""
        total = np.zeros((len(self.test), len(self.test)))
        for weight, part in setting.parts():
            total += weight * self._part_distances(part)
        if setting.per_pair and self.cameras is not None and self.test_cameras is not None:
            shared = replace(setting, per_pair=False)
            for a, b in camera_pairs(self.persons, self.cameras):
                self._replace_pair(total, shared, self.cameras, self.test_cameras, (a, b))
        return total

    def fit(self, part: Part) -> FittedPart:
        """Fit one part."""
        if self._last is None or self._last.key != _kernel_key(part):
            self._last = _KernelOf(part, self)
        K = self._last.K
        coef = self._coefficients(part, self._last)
        embedded = K @ coef
        offset = embedded.mean(axis=0)
        embedded -= offset
        # of all ordered pairs, a row with itself included
        unit = 2.0 * float(np.einsum("ij,ij", embedded, embedded)) / len(K) or 1.0
        return FittedPart(self._last.kernel, coef, offset, unit)

    def _coefficients(self, part: Part, own: _KernelOf) -> Floats:
        with warnings.catch_warnings():
            # A setting that separates nothing simply scores low.
            warnings.simplefilter("ignore", RuntimeWarning)
            if part.learner == "xqda":
                coordinates, lift = span_coordinates(own.K)
                learner = XQDA(reg=part.candidate.reg)
                learner.fit(coordinates, self.persons, self.cameras)
                return np.asarray(lift @ learner.components_)
            if part.learner == "knfst":
                nfst = KernelNFST(kernel="precomputed").fit(own.K, self.persons)
                return np.asarray(nfst.coef_)
            candidate = part.candidate
            mu, Theta, _ = own.pencil.solve(candidate.reg, candidate.reg_form, keep=True)
            return Theta * direction_weights(mu)

    def _part_distances(self, part: Part) -> Floats:
        if part not in self._distances:
            fitted = self.fit(part)
            embedding = fitted.embed(fitted.kernel.rows(self._row_products))
            self._distances[part] = squared_euclidean(embedding, embedding)
        return self._distances[part]

    def _row_products(self, i: int) -> RowProducts:
        own = self.products(i)
        return RowProducts(own.test, own.test_squares, own.train.diagonal())

    def _replace_pair(
        self,
        distances: Floats,
        setting: Setting,
        cameras: Rows,
        test_cameras: Rows,
        pair: tuple[int, int],
    ) -> None:
        """Put in the distances of a metric learned from one pair of cameras, in place."""
        learn = np.isin(cameras, pair)
        first, second = (np.flatnonzero(test_cameras == camera) for camera in pair)
        ranked = np.concatenate([first, second])
        alone = Fold(
            self.spaces, self.train[learn], self.test[ranked], self.persons[learn], cameras[learn]
        )
        across = alone.distances(setting)[: len(first), len(first) :]
        distances[np.ix_(first, second)] = across
        distances[np.ix_(second, first)] = across.T


def camera_pairs(persons: Rows, cameras: Rows) -> list[tuple[int, int]]:
    """List the pairs of cameras that see enough people in common to have their own metric."""
    seen = {camera: set(persons[cameras == camera].tolist()) for camera in np.unique(cameras)}
    return [
        (int(a), int(b))
        for a, b in combinations(seen, 2)
        if len(seen[a] & seen[b]) >= AUTO_PAIR_PEOPLE
    ]


def _kernel_key(part: Part) -> tuple[Any, ...]:
    return (*part.candidate.kernel_params().items(), part.weights, part.kernel_mean)


def codes_of(labels: NDArray[Any]) -> Rows:
    """Return labels as numbers 0, 1, 2, ... in sorted order."""
    codes: Rows = np.unique(labels, return_inverse=True)[1]
    return codes
