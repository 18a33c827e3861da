"""Gaussians of the patches in each strip, embedded as matrices, compiled.

Strips overlap by half, so the sums of products are formed once for each of the 8 half strips and
added in pairs. They are taken about a common centre: where all patches are nearly the same, as
in a flat image, sums about 0 would cancel.
"""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.images.colour import Floats

N_HALVES = 8


def strip_matrices(
    patches: Floats, weights: Floats, epsilon: float
) -> tuple[Floats, Floats, Floats]:
    """Embed the Gaussian of each strip, without its factor: [[S + mu mu^T, mu], [mu^T, 1]].

    Parameters
    ----------
    patches : float64 array of shape (m, n_patches)
        One patch per column, row of patches by row of patches from the top.
    weights : float64 array of shape (n_patches / 8,)
        Weights of the patches in half a strip; they sum to 1 / 2.
    epsilon : float
        The trace of S times this is added to the diagonal of S.

    Returns
    -------
    matrices : (7, m + 1, m + 1)
    lower, upper : (7,)
        Bounds of their eigenvalues: r / (2 + |mu|^2), where r <= 1 is what is added to the
        diagonal of S, and the trace.
    """
    centre = patches.mean(axis=1)
    extended = _centred_halves(patches, centre, np.sqrt(weights))  # (8, m + 1, n_patches / 8)
    halves = extended @ np.swapaxes(extended, 1, 2)  # (8, m + 1, m + 1)
    matrices = halves[:-1] + halves[1:]
    lower, upper = _embed(matrices, centre, epsilon)
    return matrices, lower, upper


@kernel(fast=True)
def _centred_halves(patches: Floats, centre: Floats, roots: Floats) -> Floats:
    """Vectors (g - centre, 1) of each half strip times the roots of their weights."""
    m, size = patches.shape[0], roots.shape[0]
    extended = np.empty((N_HALVES, m + 1, size))
    for half in range(N_HALVES):
        for e in range(m):
            source, row = patches[e, half * size : (half + 1) * size], extended[half, e]
            for patch in range(size):
                row[patch] = roots[patch] * (source[patch] - centre[e])
        for patch in range(size):
            extended[half, m, patch] = roots[patch]
    return extended


@kernel(fast=True)
def _embed(matrices: Floats, centre: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Turn moments about the centre into embedded matrices, in place; return their bounds."""
    count, m = matrices.shape[0], centre.shape[0]
    lower, upper = np.empty(count), np.empty(count)
    mean = np.empty(m)
    for strip in range(count):
        P, offset = matrices[strip], matrices[strip, m]
        trace = 0.0
        squares = 0.0
        for i in range(m):
            mean[i] = offset[i] + centre[i]
            squares += mean[i] * mean[i]
            trace += P[i, i] - offset[i] * offset[i]
        added = epsilon * trace
        for i in range(m):
            row, offset_i, mean_i = P[i], offset[i], mean[i]
            for j in range(m):
                row[j] += mean_i * mean[j] - offset_i * offset[j]
            row[i] += added
            row[m] = mean_i
        for i in range(m):
            offset[i] = mean[i]
        lower[strip] = min(added, 1.0) / (2.0 + squares)
        upper[strip] = 1.0 + squares + trace + m * added
    return lower, upper
