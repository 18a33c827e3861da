"""Constants of GOG, and the small formulas in which they stand."""

from __future__ import annotations

import numpy as np

from resight.images.colour import Floats

EPSILON = 1e-3  # regularisation of both covariances, relative to their trace
LEAST_TRACE = 0.01  # of a patch: a floor under its trace, so that flat patches are regular
N_STRIPS = 7
OFF_DIAGONAL = 1.4142  # the published program has this literal, not the square root of 2


def column_weights(columns: int) -> Floats:
    """Weight of each column of patches: a person stands in the middle.

    Columns are counted from 1, as in the published program, so that the peak lies on column
    ``columns / 2`` and the weights are not symmetric.
    """
    x = np.arange(1, columns + 1)
    return np.exp(-((x - columns / 2) ** 2) / (2 * (columns / 4) ** 2))


def logarithm(matrices: Floats) -> Floats:
    """Logarithm of symmetric positive definite matrices, from their eigenvectors."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.log(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def half_vector(matrices: Floats) -> Floats:
    """Upper triangles row by row, (..., n, n) to (..., n (n + 1) / 2); off-diagonals weighted."""
    row, column = np.triu_indices(matrices.shape[-1])
    return matrices[..., row, column] * np.where(row == column, 1.0, OFF_DIAGONAL)
