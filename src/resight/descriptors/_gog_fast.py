"""The stages of GOG over compiled kernels; `tests/definitions` says the same in plain NumPy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.descriptors._gog_patch_logs import LANES, SIDE, patch_logarithms
from resight.descriptors._gog_region_logs import N_HALVES, region_logarithms, strip_matrices
from resight.descriptors.gog import (
    COLOURS,
    EPSILON,
    LEAST_TRACE,
    N_STRIPS,
    OFF_DIAGONAL,
    SHARED,
    colour_features,
    column_weights,
    half_vector,
    logarithm,
    shared_features,
)
from resight.images.colour import Floats, Image

# log x = C - sum_k weights[k] / (x + poles[k]) on 1/sqrt(condition) <= x <= sqrt(condition), up to
# `largest_error`; computed by scripts/log_poles.py. C is not kept: the matrices of GOG have
# determinant 1, so their logarithms are known to have trace 0.
POLES = json.loads(files("resight.descriptors").joinpath("gog_poles.json").read_bytes())
PATCH_POLES, PATCH_WEIGHTS = (np.array(POLES["patch"][name]) for name in ("poles", "weights"))
REGION_POLES, REGION_WEIGHTS = (np.array(POLES["region"][name]) for name in ("poles", "weights"))
REGION_CONDITION = POLES["region"]["condition"]
N_FEATURES = len(SHARED) + sum(len(names) for names in COLOURS.values())
NOTHING, ONE = N_FEATURES, N_FEATURES + 1  # two more features, always 0 and always 1


def gog_fast(image: Image, norm: bool = False) -> Floats:
    """Describe an image whose size fits: RGB | Lab | HSV | nRnG, each with the strip fastest."""
    sums = patch_moments(pixel_groups(image))  # (n_pairs, n_patches)
    blocks = []
    for space in COLOURS:
        patches = patch_half_vectors(sums, space)  # (45 or 36, n_patches)
        if norm:
            patches /= _lengths(patches)
        matrices = strip_gaussians(patches, *image.shape[:2])  # (7, 46, 46) or (7, 37, 37), bounds
        strips = strip_half_vectors(*matrices).reshape(-1, N_STRIPS)
        blocks.append((strips / _lengths(strips) if norm else strips).ravel())
    return np.concatenate(blocks)


def _lengths(columns: Floats) -> Floats:
    return np.maximum(np.sqrt((columns**2).sum(axis=0)), np.finfo(float).tiny)


def pixel_groups(image: Image) -> list[Floats]:
    """Measure every pixel: what all colour spaces share, then each space, (h, w, any)."""
    return [shared_features(image), *(colour_features(image, space) for space in COLOURS)]


def patch_moments(groups: Sequence[Floats]) -> Floats:
    """Sum over 5 x 5 patches the products of features that some space needs, (n_pairs, n_patches).

    With the constant 1 as one more feature, the sums of all products of a patch hold its pixel
    count, its mean and its covariance; pixels outside the image are zeros and count nothing.
    """
    return patch_sums(framed_planes(groups), feature_pairs()[0])


def framed_planes(features: Sequence[Floats]) -> Floats:
    """Lay out groups of features (h, w, any) for `patch_sums`: planes (n, h + 4, w + 4).

    After all groups follow the features that are 0 and 1 everywhere. Every plane has a frame of
    zeros, and each of its rows holds first the even columns, then the odd ones: patches start
    on every second pixel, and this way the sums run over neighbours in memory.
    """
    height, width = features[0].shape[:2]
    count = sum(group.shape[2] for group in features)
    planes = np.zeros((count + 2, height + 4, 2, width // 2 + 2))
    inside = planes[:, 2:-2, :, 1:-1]  # (n, h, 2, w / 2)
    start = 0
    for group in features:
        columns = group.reshape(height, width // 2, 2, -1)
        inside[start : start + group.shape[2]] = columns.transpose(3, 0, 2, 1)
        start += group.shape[2]
    inside[-1] = 1.0
    return planes.reshape(count + 2, height + 4, width + 4)


@kernel(fast=True)
def patch_sums(planes: Floats, pairs: NDArray[np.int64]) -> Floats:
    """Sum the products of pairs of `planes` over each patch, (n_pairs, h/2 * w/2)."""
    rows, half = (planes.shape[1] - 4) // 2, planes.shape[2] // 2
    columns = half - 2
    sums = np.empty((pairs.shape[0], rows * columns))
    line = np.empty(2 * half)
    for pair in range(pairs.shape[0]):
        a, b = planes[pairs[pair, 0]], planes[pairs[pair, 1]]
        for row in range(rows):
            a0, a1, a2, a3, a4 = _five_lines(a, 2 * row)
            b0, b1, b2, b3, b4 = _five_lines(b, 2 * row)
            for x in range(2 * half):
                line[x] = a0[x] * b0[x] + a1[x] * b1[x] + a2[x] * b2[x] + a3[x] * b3[x]
                line[x] += a4[x] * b4[x]
            even, odd = line[:half], line[half:]
            out = sums[pair, row * columns : (row + 1) * columns]
            for x in range(columns):
                out[x] = even[x] + odd[x] + even[x + 1] + odd[x + 1] + even[x + 2]
    return sums


@kernel(fast=True)
def _five_lines(plane: Floats, top: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    return plane[top], plane[top + 1], plane[top + 2], plane[top + 3], plane[top + 4]


@lru_cache(maxsize=1)
def feature_pairs() -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Say which products of features there are, and which of them make each space's matrix.

    Pairs (n_pairs, 2) stand once each, though the colour spaces share height and orientation. In
    the table (9, 9) of a space is the pair that makes entry (i, j), i >= j; a feature that is
    always 0 fills up nRnG.
    """
    pairs: dict[tuple[int, int], int] = {}
    entries = {}
    start = len(SHARED)
    for space, names in COLOURS.items():
        colours = [*range(start, start + len(names)), NOTHING][:3]
        used = [*range(len(SHARED)), *colours, ONE]
        table = np.zeros((SIDE, SIDE), np.int64)
        for i, j in zip(*np.tril_indices(SIDE), strict=True):
            table[i, j] = pairs.setdefault((used[i], used[j]), len(pairs))
        entries[space] = table
        start += len(names)
    return np.array(list(pairs), np.int64), entries


@lru_cache(maxsize=len(COLOURS))
def kept_entries(space: str) -> NDArray[np.int64]:
    """Entries (i, j), i >= j, of a patch's 9 x 9 logarithm in half-vector order, (m, 2)."""
    used = [*range(len(SHARED) + len(COLOURS[space])), SIDE - 1]
    return np.array([(j, i) for i in used for j in used if i <= j], np.int64)


def patch_half_vectors(sums: Floats, space: str) -> Floats:
    """Logarithms of the Gaussians of all patches, one patch per column, (45 or 36, n_patches)."""
    entries, kept = feature_pairs()[1][space], kept_entries(space)
    constants = (EPSILON, LEAST_TRACE, OFF_DIAGONAL)
    n_patches = sums.shape[1]
    if n_patches % LANES:
        sums = np.pad(sums, ((0, 0), (0, -n_patches % LANES)), "edge")
    logs = patch_logarithms(sums, entries, kept, PATCH_POLES, PATCH_WEIGHTS, *constants)
    return np.ascontiguousarray(logs[:, :n_patches])


def strip_gaussians(patches: Floats, height: int, width: int) -> tuple[Floats, Floats, Floats]:
    """Embed the Gaussian of each strip: matrices (7, m + 1, m + 1), bounds of their eigenvalues."""
    return strip_matrices(patches, half_strip_weights(height, width), EPSILON)


@lru_cache(maxsize=8)
def half_strip_weights(height: int, width: int) -> Floats:
    """Weights of the patches of half a strip, (h / 16 * w / 2,), of sum 1 / 2."""
    weights = np.tile(column_weights(width // 2), height // 2 // N_HALVES)
    return weights / (2.0 * weights.sum())


def strip_half_vectors(matrices: Floats, lower: Floats, upper: Floats) -> Floats:
    """Logarithms of the matrices of strips, scaled to determinant 1; strip index fastest."""
    if (upper > REGION_CONDITION * lower).any():
        # Nearly the same patches all over a strip, as in a flat image.
        return _by_eigenvectors(matrices)
    scaled = matrices / np.sqrt(lower * upper)[:, None, None]
    return region_logarithms(scaled, REGION_POLES, REGION_WEIGHTS, OFF_DIAGONAL).ravel()


def _by_eigenvectors(matrices: Floats) -> Floats:
    logs = logarithm(matrices)  # (7, side, side)
    means = np.trace(logs, axis1=1, axis2=2) / logs.shape[1]
    return half_vector(logs - means[:, None, None] * np.eye(logs.shape[1])).T.ravel()
