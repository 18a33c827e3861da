"""Learn from similar and dissimilar pairs: all pairs across cameras, or listed ones."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import validate_data

from resight.errors import InputError
from resight.learners._base import (
    Codes,
    Floats,
    MetricLearner,
    _refuse_equal,
    _without_learned_attributes,
    fingerprint_of,
)
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._subspace import CENTRED_BY_COLUMNS, round_off


@dataclass(frozen=True)
class ListedPairs:
    """Pairs of training rows, given one by one."""

    n_sightings: int
    similar: Codes  # (n_pairs, 2): rows of the training set
    dissimilar: Codes  # (n_pairs, 2)

    def mean_similar(self, M: Floats) -> Floats:
        """Return L_S M / n_S."""
        return self._mean(self.similar, M)

    def mean_dissimilar(self, M: Floats) -> Floats:
        """Return L_D M / n_D."""
        return self._mean(self.dissimilar, M)

    @property
    def n_similar(self) -> int:
        """Number of similar pairs."""
        return len(self.similar)

    def _mean(self, pairs: Codes, M: Floats) -> Floats:
        incidence = self.incidence(pairs)
        product: Floats = incidence.T @ (incidence @ M)
        return product / len(pairs)

    def incidence(self, pairs: Codes) -> sparse.csr_array:
        """Rows e_i - e_j of the listed pairs, (n_pairs, n_sightings)."""
        n = len(pairs)
        values = np.tile([1.0, -1.0], n)
        starts = np.arange(0, 2 * n + 1, 2)
        return sparse.csr_array((values, pairs.ravel(), starts), shape=(n, self.n_sightings))


def n_independent_similar(pairs: CrossCameraPairs | ListedPairs) -> int:
    """Largest number of independent differences x_i - x_j among the similar pairs."""
    if isinstance(pairs, CrossCameraPairs):
        graph, n = pairs.similar.matrix(), len(pairs.persons)
    else:
        incidence = pairs.incidence(pairs.similar)
        graph, n = sparse.csr_array(incidence.T @ incidence), pairs.n_sightings
    return n - int(connected_components(graph, directed=False)[0])


Self = TypeVar("Self", bound="PairLearner")


class PairLearner(MetricLearner):
    """A learner that needs pairs only: `_fit_to_pairs` gets the rows and the pairs."""

    _dtypes = CENTRED_BY_COLUMNS

    def fit_pairs(self: Self, X: ArrayLike, similar: ArrayLike, dissimilar: ArrayLike) -> Self:
        """Learn from listed pairs instead of persons and cameras.

        Parameters
        ----------
        X : array-like of shape (n_sightings, n_features)
            Descriptors; for ``kernel="precomputed"`` the square kernel matrix.
        similar, dissimilar : array-like of int, shape (n_pairs, 2)
            Rows of X that show the same person, and rows that show two persons.
        """
        self._validate_params()
        fresh = _without_learned_attributes(self)
        rows: Floats = validate_data(fresh, X, dtype=self._dtypes, ensure_min_samples=2)
        _refuse_equal(rows)
        alike = _checked("similar", similar, len(rows))
        unlike = _checked("dissimilar", dissimilar, len(rows))
        fresh.persons_ = None
        fresh.training_fingerprint_ = fingerprint_of(rows, alike, unlike)
        fresh._fit_to_pairs(rows, ListedPairs(len(rows), alike, unlike))
        # Only a fit that came to its end changes this object.
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        self._fit_to_pairs(X, CrossCameraPairs(persons, cameras))

    @abstractmethod
    def _fit_to_pairs(self, X: Floats, pairs: CrossCameraPairs | ListedPairs) -> None:
        """Learn from validated rows and the pairs among them."""


def positive_root(M: Floats) -> Floats:
    """Return F with F F^T the nearest positive semi-definite matrix to M, (p, rank)."""
    values, vectors = scipy.linalg.eigh(M, check_finite=False)
    positive = values > round_off(len(M)) * np.abs(values).max()
    if not positive.any():
        raise InputError(
            "the similar pairs differ more than the dissimilar ones in every direction, so nothing "
            "is left of the metric; check persons and cameras, and that the pairs are not swapped"
        )
    root: Floats = vectors[:, positive] * np.sqrt(values[positive])
    return root


def _checked(name: str, given: ArrayLike, n_sightings: int) -> Codes:
    pairs = np.asarray(given)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise InputError(
            f"{name} pairs have shape {pairs.shape} and type {pairs.dtype}; give at least one pair "
            "of row numbers, shape (n_pairs, 2)"
        )
    if pairs.min() < 0 or pairs.max() >= n_sightings:
        raise InputError(
            f"{name} pairs name rows {pairs.min()} to {pairs.max()}, but X has rows 0 to "
            f"{n_sightings - 1}"
        )
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise InputError(f"a {name} pair names the same row twice; give two different rows")
    return pairs.astype(np.intp)
