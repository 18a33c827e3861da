"""GOG in plain NumPy: slow, short, and what the compiled kernels are tested against.

A patch is summarised by the Gaussian of its pixels, a strip by the Gaussian of its patches. A
Gaussian is written as a symmetric positive definite matrix of determinant 1, and its matrix
logarithm lies in a vector space, where Gaussians can be summarised again or compared.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from resight.descriptors.gog import (
    COLOURS,
    EPSILON,
    LEAST_TRACE,
    N_STRIPS,
    colour_features,
    column_weights,
    half_vector,
    logarithm,
    shared_features,
)
from resight.images.colour import Floats, Image

RADIUS, STEP = 2, 2  # patches of 5 x 5 pixels, centred on every second pixel


def gog_definition(image: Image) -> Floats:
    """Describe an image whose size fits: RGB | Lab | HSV | nRnG."""
    return np.concatenate([describe_in_space(image, space) for space in COLOURS])


def describe_in_space(image: Image, space: str) -> Floats:
    """Describe an image in one colour space, strip index fastest."""
    pixels = pixel_features(image, space)  # (h, w, d)
    patches = half_vector(logarithm(embed(*patch_gaussians(pixels))))  # (h/2, w/2, m)
    strips = half_vector(logarithm(embed(*strip_gaussians(patches))))  # (7, (m+1)(m+2)/2)
    return strips.T.ravel()


def pixel_features(image: Image, space: str) -> Floats:
    """Measure every pixel in one colour space: [y, M0, M1, M2, M3, colour], (h, w, 8 or 7)."""
    return np.concatenate([shared_features(image), colour_features(image, space)], axis=-1)


def patch_gaussians(pixels: Floats) -> tuple[Floats, Floats]:
    """Mean (h/2, w/2, d) and covariance (h/2, w/2, d, d) of each patch, cut off at the border."""
    windows = _windows(pixels)  # (h/2, w/2, d, 25)
    inside = _windows(np.ones((*pixels.shape[:2], 1)))  # (h/2, w/2, 1, 25): 0 beyond the border
    n = inside.sum(axis=-1)  # (h/2, w/2, 1): 9 to 25 pixels
    mean = windows.sum(axis=-1) / n
    centred = inside * (windows - mean[..., None])
    covariance = centred @ np.swapaxes(centred, -1, -2) / (n[..., None] - 1.0)
    trace = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None]
    return mean, covariance + EPSILON * np.maximum(trace, LEAST_TRACE) * np.eye(pixels.shape[2])


def _windows(pixels: Floats) -> Floats:
    """Pixels of the 5 x 5 window around every second pixel, (h/2, w/2, d, 25)."""
    framed = np.pad(pixels, ((RADIUS, RADIUS), (RADIUS, RADIUS), (0, 0)))
    side = 2 * RADIUS + 1
    windows = sliding_window_view(framed, (side, side), axis=(0, 1))[::STEP, ::STEP]
    return windows.reshape(*windows.shape[:3], -1)


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


def embed(mean: Floats, covariance: Floats) -> Floats:
    """Write Gaussians N(mu, S) as det(S)^(-1/(d+1)) [[S + mu mu^T, mu], [mu^T, 1]]."""
    d = mean.shape[-1]
    matrix = np.ones((*mean.shape[:-1], d + 1, d + 1))
    matrix[..., :d, :d] = covariance + mean[..., :, None] * mean[..., None, :]
    matrix[..., :d, d] = matrix[..., d, :d] = mean
    log_determinant = np.linalg.slogdet(covariance)[1]
    return np.exp(-log_determinant / (d + 1))[..., None, None] * matrix
