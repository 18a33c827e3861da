"""What GOG measures at every pixel, its constants, and the small formulas they stand in."""

from __future__ import annotations

import numpy as np

from resight.images import colour
from resight.images.colour import Floats, Image

EPSILON = 1e-3  # regularisation of both covariances, relative to their trace
LEAST_TRACE = 0.01  # of a patch: a floor under its trace, so that flat patches are regular
N_STRIPS = 7
OFF_DIAGONAL = 1.4142  # the published program has this literal, not the square root of 2
N_ORIENTATIONS = 4
LAB_OFFSET = np.array([0.0, 50.0, 50.0])
SHARED = ("y", "M0", "M1", "M2", "M3")
COLOURS = {
    "rgb": ("R", "G", "B"),
    "lab": ("L", "a", "b"),
    "hsv": ("H", "S", "V"),
    "nrng": ("r", "g"),
}


def shared_features(image: Image) -> Floats:
    """Measure what does not depend on the colour space, [y, M0, M1, M2, M3], (h, w, 5)."""
    height, width = image.shape[:2]
    features = np.empty((height, width, 1 + N_ORIENTATIONS))
    features[..., 0] = np.arange(1, height + 1)[:, None] / height
    features[..., 1:] = orientation_votes((colour.luma(image).astype(np.float64) - 16.0) / 235.0)
    return features


def orientation_votes(luma: Floats) -> Floats:
    """Share each gradient's magnitude between the two nearest of 4 orientations, (h, w, 4)."""
    framed = np.pad(luma, 1)  # zeros outside the image, so its border is an edge
    across = framed[1:-1, 2:] - framed[1:-1, :-2]
    upward = framed[:-2, 1:-1] - framed[2:, 1:-1]
    magnitude = np.sqrt(across**2 + upward**2)
    # The original takes the angle from the vertical; a full turn of 4 bins starts at -pi.
    turn = (np.arctan2(across, upward) + np.pi) * (N_ORIENTATIONS / (2.0 * np.pi))
    votes = np.maximum(1.0 - np.abs(turn[..., None] - np.arange(N_ORIENTATIONS)), 0.0)
    votes[..., 0] += np.maximum(turn - (N_ORIENTATIONS - 1), 0.0)  # a full turn is none
    votes *= magnitude[..., None]
    return votes


def colour_features(image: Image, space: str) -> Floats:
    """Express colour in about [0, 1]: rgb, lab and hsv as (h, w, 3), nrng as (h, w, 2)."""
    if space == "rgb":
        return image / 255.0
    if space == "lab":
        return (colour.lab(image) + LAB_OFFSET) / 100.0
    if space == "hsv":
        return colour.hsv(image)
    wide = image.astype(np.float64)
    total = wide[..., 0] + wide[..., 1] + wide[..., 2]
    return wide[..., :2] / np.maximum(total, 1.0)[..., None]  # black stays 0


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
