"""Normalisation of descriptors before learning: centre and L2-normalise block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from resight.learners._blocks import block_slices, normalized
from resight.saving import SavableMixin

Rows = NDArray[np.float32] | NDArray[np.float64]


class BlockNormalizer(SavableMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract the training mean and divide each block of a row by its L2 norm.

    Parameters
    ----------
    blocks : sequence of int, optional
        Widths of the blocks, which add up to the number of features; by default one block. A
        descriptor tells its own (``GOG().blocks``).

    Attributes
    ----------
    mean_ : array (n_features,)
        Mean of the training rows: fit on training people only.

    Notes
    -----
    A block that is exactly the mean has no direction: it stays zero (published code divides
    zero by zero there). float32 input stays float32.

    Examples
    --------
    >>> from resight import BlockNormalizer
    >>> BlockNormalizer(blocks=(1, 2)).fit_transform([[1.0, 3.0, 4.0], [-1.0, -3.0, -4.0]])
    array([[ 1. ,  0.6,  0.8],
           [-1. , -0.6, -0.8]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"blocks": [None, "array-like"]}
    state_version = 1
    learned = "mean_ n_features_in_ feature_names_in_"

    def __init__(self, blocks: Sequence[int] | None = None) -> None:
        self.blocks = blocks

    def fit(self, X: ArrayLike, y: object = None) -> BlockNormalizer:
        """Learn the mean of the training rows."""
        self._validate_params()
        rows: NDArray[Any] = validate_data(self, X, dtype=(np.float64, np.float32))
        block_slices(self.blocks, rows.shape[1])
        self.mean_ = rows.mean(axis=0, dtype=np.float64)
        return self

    def transform(self, X: ArrayLike) -> Rows:
        """Centre and normalise; the input is not changed."""
        check_is_fitted(self)
        rows: NDArray[Any] = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return normalized(rows, self.mean_, self.blocks)
