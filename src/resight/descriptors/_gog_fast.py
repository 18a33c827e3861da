"""The stages of GOG over compiled kernels; `_gog_definition` says the same in plain NumPy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from resight.descriptors import _gog_poles as tables
from resight.descriptors._gog_definition import (
    EPSILON,
    LEAST_TRACE,
    N_STRIPS,
    OFF_DIAGONAL,
    column_weights,
    half_vector,
    logarithm,
)
from resight.descriptors._gog_moments import framed_planes, patch_sums
from resight.descriptors._gog_patch_logs import SIDE, patch_logarithms
from resight.descriptors._gog_pixels import COLOURS, SHARED, colour_features, shared_features
from resight.descriptors._gog_region_logs import region_logarithms
from resight.images.colour import Floats, Image

PATCH_POLES, PATCH_WEIGHTS = np.array(tables.PATCH_POLES), np.array(tables.PATCH_WEIGHTS)
REGION_POLES, REGION_WEIGHTS = np.array(tables.REGION_POLES), np.array(tables.REGION_WEIGHTS)
N_COLOURS = sum(len(names) for names in COLOURS.values())
NOTHING, ONE = len(SHARED) + N_COLOURS, len(SHARED) + N_COLOURS + 1  # features always 0 and 1


def gog_fast(image: Image) -> Floats:
    """Describe an image whose size fits: RGB | Lab | HSV | nRnG, each with the strip fastest."""
    sums = all_patch_sums(all_pixel_features(image))  # (n_pairs, n_patches)
    grid = image.shape[0] // 2, image.shape[1] // 2
    patches = (patch_half_vectors(sums, space) for space in COLOURS)  # (45 or 36, n_patches)
    return np.concatenate([strip_half_vectors(*strip_matrices(p, *grid)) for p in patches])


def all_pixel_features(image: Image) -> Floats:
    """Measure every pixel in all colour spaces at once, then the constants 0 and 1, (h, w, 18)."""
    features = np.empty((*image.shape[:2], ONE + 1))
    features[..., : len(SHARED)] = shared_features(image)
    start = len(SHARED)
    for space, names in COLOURS.items():
        features[..., start : start + len(names)] = colour_features(image, space)
        start += len(names)
    features[..., NOTHING], features[..., ONE] = 0.0, 1.0
    return features


def all_patch_sums(features: Floats) -> Floats:
    """Sum the products of features that some colour space needs, (n_pairs, n_patches)."""
    return patch_sums(framed_planes(features), feature_pairs()[0])


@lru_cache(maxsize=1)
def feature_pairs() -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Say which products of features there are, and which of them make each matrix.

    Returns
    -------
    pairs : int64 array of shape (n_pairs, 2)
        Each pair once, though the colour spaces share height and orientation.
    entries : for each colour space an int64 array of shape (9, 9)
        Row of `pairs` that makes entry (i, j), i >= j.
    """
    pairs: dict[tuple[int, int], int] = {}
    entries = {}
    start = len(SHARED)
    for space, names in COLOURS.items():
        colours = [*range(start, start + len(names)), NOTHING, NOTHING][:3]
        used = [*range(len(SHARED)), *colours, ONE]
        table = np.zeros((SIDE, SIDE), np.int64)
        for i, j in zip(*np.tril_indices(SIDE), strict=True):
            table[i, j] = pairs.setdefault((used[i], used[j]), len(pairs))
        entries[space] = table
        start += len(names)
    return np.array(list(pairs), np.int64), entries


@lru_cache(maxsize=8)
def kept_entries(space: str) -> NDArray[np.int64]:
    """Entries (i, j), i >= j, of a patch's 9 x 9 logarithm in half-vector order, (m, 2).

    Without the feature that is always 0, which fills up nRnG to 9 x 9.
    """
    used = [*range(len(SHARED) + len(COLOURS[space])), SIDE - 1]
    return np.array([(j, i) for i in used for j in used if i <= j], np.int64)


def patch_half_vectors(sums: Floats, space: str) -> Floats:
    """Logarithms of the Gaussians of all patches, one patch per column, (45 or 36, n_patches)."""
    entries, kept = feature_pairs()[1][space], kept_entries(space)
    constants = (EPSILON, LEAST_TRACE, OFF_DIAGONAL)
    return patch_logarithms(sums, entries, kept, PATCH_POLES, PATCH_WEIGHTS, *constants)


def strip_matrices(patches: Floats, rows: int, columns: int) -> tuple[Floats, Floats, Floats]:
    """Embed the Gaussian of each strip, without its factor: [[S + mu mu^T, mu], [mu^T, 1]].

    Returns
    -------
    matrices : (7, m + 1, m + 1)
    lower, upper : (7,)
        Bounds of their eigenvalues: the trace, and r / (2 + |mu|^2) where r <= 1 is what is
        added to the diagonal of S.
    """
    m = len(patches)
    weights = np.tile(column_weights(columns), rows // 8)
    weights /= 2.0 * weights.sum()  # a strip is two halves
    # Sums about a common centre: strips of a flat image differ little, products would cancel.
    centre = patches.mean(axis=1, keepdims=True)
    extended = np.ones((N_STRIPS + 1, m + 1, len(weights)))
    extended[:, :m] = np.moveaxis((patches - centre).reshape(m, N_STRIPS + 1, -1), 0, 1)
    extended *= np.sqrt(weights)
    halves = extended @ np.swapaxes(extended, 1, 2)  # (8, m + 1, m + 1)
    matrices = halves[:-1] + halves[1:]  # (7, m + 1, m + 1)
    offset = matrices[:, :m, m]  # (7, m): mean about the centre
    mean = offset + centre[:, 0]
    covariance = matrices[:, :m, :m] - offset[:, :, None] * offset[:, None, :]
    added = EPSILON * np.trace(covariance, axis1=1, axis2=2)
    matrices[:, :m, :m] = covariance + mean[:, :, None] * mean[:, None, :]
    matrices[:, range(m), range(m)] += added[:, None]
    matrices[:, :m, m] = matrices[:, m, :m] = mean
    lower = np.minimum(added, 1.0) / (2.0 + (mean**2).sum(axis=1))
    return matrices, lower, np.trace(matrices, axis1=1, axis2=2)


def strip_half_vectors(matrices: Floats, lower: Floats, upper: Floats) -> Floats:
    """Logarithms of the matrices of strips, scaled to determinant 1; strip index fastest."""
    logs = np.empty_like(matrices)  # (7, side, side)
    regular = upper <= tables.REGION_CONDITION * lower
    if regular.all():
        scaled = matrices / np.sqrt(lower * upper)[:, None, None]
        region_logarithms(scaled, REGION_POLES, REGION_WEIGHTS, logs)
    else:  # nearly the same patches all over a strip: a flat image
        logs = logarithm(matrices)
    diagonal = range(logs.shape[1])
    logs[:, diagonal, diagonal] -= np.trace(logs, axis1=1, axis2=2)[:, None] / len(diagonal)
    return half_vector(np.swapaxes(logs, 1, 2)).T.ravel()
