"""GOG in plain NumPy: slow, short, and what the compiled kernels are tested against.

A patch is summarised by the Gaussian of its pixels, a strip by the Gaussian of its patches. A
Gaussian is written as a symmetric positive definite matrix of determinant 1, and its matrix
logarithm lies in a vector space, where Gaussians can be summarised again or compared.
"""

from __future__ import annotations

import numpy as np

from resight.descriptors._gog_pixels import COLOURS, pixel_features
from resight.images.colour import Floats, Image

EPSILON = 1e-3  # regularisation of both covariances, relative to their trace
LEAST_TRACE = 0.01  # of a patch: a floor under its trace, so that flat patches are regular
RADIUS, STEP = 2, 2  # patches of 5 x 5 pixels, centred on every second pixel
N_STRIPS = 7
OFF_DIAGONAL = 1.4142  # the published program has this literal, not the square root of 2


def gog_definition(image: Image) -> Floats:
    """Describe an image whose size fits: RGB | Lab | HSV | nRnG."""
    return np.concatenate([describe_in_space(image, space) for space in COLOURS])


def describe_in_space(image: Image, space: str) -> Floats:
    """Describe an image in one colour space, strip index fastest."""
    pixels = pixel_features(image, space)  # (h, w, d)
    patches = half_vector(logarithm(embed(*patch_gaussians(pixels))))  # (h/2, w/2, m)
    strips = half_vector(logarithm(embed(*strip_gaussians(patches))))  # (7, (m+1)(m+2)/2)
    return strips.T.ravel()


def patch_gaussians(pixels: Floats) -> tuple[Floats, Floats]:
    """Mean (h/2, w/2, d) and covariance (h/2, w/2, d, d) of each patch, cut off at the border."""
    height, width, d = pixels.shape
    means = np.empty((height // STEP, width // STEP, d))
    covariances = np.empty((height // STEP, width // STEP, d, d))
    for row, column in np.ndindex(means.shape[:2]):
        top, left = STEP * row, STEP * column
        patch = pixels[max(top - RADIUS, 0) : top + RADIUS + 1]
        patch = patch[:, max(left - RADIUS, 0) : left + RADIUS + 1].reshape(-1, d)  # (9..25, d)
        means[row, column] = patch.mean(axis=0)
        covariance = np.cov(patch.T)  # divided by n - 1
        floor = EPSILON * max(float(np.trace(covariance)), LEAST_TRACE)
        covariances[row, column] = covariance + floor * np.eye(d)
    return means, covariances


def strip_gaussians(patches: Floats) -> tuple[Floats, Floats]:
    """Mean (7, m) and covariance (7, m, m) of each strip, patches weighted by their column."""
    rows, columns, m = patches.shape
    weights = np.tile(column_weights(columns), rows // 4)
    weights /= weights.sum()
    means, covariances = np.empty((N_STRIPS, m)), np.empty((N_STRIPS, m, m))
    for strip in range(N_STRIPS):  # a quarter of the height each, half overlapping
        top = strip * rows // 8
        inside = patches[top : top + rows // 4].reshape(-1, m)
        means[strip] = weights @ inside
        centred = inside - means[strip]
        covariance = (weights[:, None] * centred).T @ centred  # biased: weights sum to 1
        covariances[strip] = covariance + EPSILON * np.trace(covariance) * np.eye(m)
    return means, covariances


def column_weights(columns: int) -> Floats:
    """Weight of each column of patches: a person stands in the middle.

    Columns are counted from 1, as in the published program, so that the peak lies on column
    ``columns / 2`` and the weights are not symmetric.
    """
    x = np.arange(1, columns + 1)
    return np.exp(-((x - columns / 2) ** 2) / (2 * (columns / 4) ** 2))


def embed(mean: Floats, covariance: Floats) -> Floats:
    """Write Gaussians N(mu, S) as det(S)^(-1/(d+1)) [[S + mu mu^T, mu], [mu^T, 1]]."""
    d = mean.shape[-1]
    matrix = np.ones((*mean.shape[:-1], d + 1, d + 1))
    matrix[..., :d, :d] = covariance + mean[..., :, None] * mean[..., None, :]
    matrix[..., :d, d] = matrix[..., d, :d] = mean
    log_determinant = np.linalg.slogdet(covariance)[1]
    return np.exp(-log_determinant / (d + 1))[..., None, None] * matrix


def logarithm(matrices: Floats) -> Floats:
    """Logarithm of symmetric positive definite matrices, from their eigenvectors."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.log(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def half_vector(matrices: Floats) -> Floats:
    """Upper triangles row by row, (..., n, n) to (..., n (n + 1) / 2); off-diagonals weighted."""
    row, column = np.triu_indices(matrices.shape[-1])
    return matrices[..., row, column] * np.where(row == column, 1.0, OFF_DIAGONAL)
