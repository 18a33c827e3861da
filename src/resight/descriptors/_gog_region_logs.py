"""Gaussians of the patches in each strip as matrices, and their logarithms, compiled.

Strips overlap by half, so the sums of products are formed once for each of the 8 half strips and
added in pairs. They are taken about a common centre: where all patches are nearly the same, as
in a flat image, sums about 0 would cancel.

Logarithms of the 46 x 46 (37 x 37) matrices are taken one at a time, in the three steps of
`_gog_patch_logs` with ordinary loops: rows are long enough for vector instructions. Matrices are
kept whole, not as triangles, and the part that is still to be reduced is always the leading one,
so that every inner loop runs along a row from its start.
"""

from __future__ import annotations

import math

import numpy as np

from resight._compile import kernel
from resight.images.colour import Floats

N_HALVES = 8
TINY = 1e-200  # reflectors shorter than this (squared) have nothing to reflect


def strip_matrices(
    patches: Floats, weights: Floats, epsilon: float
) -> tuple[Floats, Floats, Floats]:
    """Embed the Gaussian of each strip, without its factor: [[S + mu mu^T, mu], [mu^T, 1]].

    `patches` (m, n_patches) has one patch per column, row of patches by row from the top;
    `weights` (n_patches / 8,) are those of half a strip and sum to 1 / 2; the trace of S times
    `epsilon` is added to the diagonal of S. Returns the matrices (7, m + 1, m + 1) and bounds of
    their eigenvalues, each (7,): r / (2 + |mu|^2), where r <= 1 is what is added, and the trace.
    """
    centre = patches.mean(axis=1)
    extended = _centred_halves(patches, centre, np.sqrt(weights))  # (8, m + 1, n_patches / 8)
    halves = extended @ np.swapaxes(extended, 1, 2)  # (8, m + 1, m + 1)
    matrices = halves[:-1] + halves[1:]
    return matrices, *_embed(matrices, centre, epsilon)


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
        extended[half, m] = roots
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
        offset[:m] = mean
        lower[strip] = min(added, 1.0) / (2.0 + squares)
        upper[strip] = 1.0 + squares + trace + m * added
    return lower, upper


@kernel(fast=True)
def region_logarithms(
    matrices: Floats, poles: Floats, weights: Floats, off_diagonal_factor: float
) -> Floats:
    """Take the logarithms of matrices (n, side, side), each first scaled to determinant 1.

    They are overwritten, and their eigenvalues must lie in the interval of the poles. Returns the
    upper triangles row by row, (side (side + 1) / 2, n): which matrix is the fastest index.
    """
    count, side = matrices.shape[:2]
    vectors = np.empty((side * (side + 1) // 2, count))
    F, reflectors = np.empty((side, side)), np.empty((side, side))
    factors, b, p = np.empty(side), np.empty(side), np.empty(side)  # b: off the diagonal
    leading = np.empty((side + 1, poles.shape[0]))
    trailing = np.empty((side + 1, poles.shape[0]))
    for index in range(count):
        A = matrices[index]
        _tridiagonalise(A, reflectors, factors, b, p)
        _minors(A, b, poles, leading, trailing)
        _sum_inverses(b, weights, leading, trailing, F)
        _transform_back(F, reflectors, factors, p)
        _store(F, off_diagonal_factor, vectors[:, index])
    return vectors


@kernel(fast=True)
def _tridiagonalise(A: Floats, reflectors: Floats, factors: Floats, b: Floats, p: Floats) -> None:
    """Reduce from the last row up; the diagonal stays in `A`."""
    for k in range(A.shape[0] - 1, 1, -1):
        v, row = reflectors[k], A[k]
        rest = 0.0
        for j in range(k - 1):
            v[j] = row[j]
            rest += row[j] * row[j]
        pivot = row[k - 1]
        length = math.sqrt(rest + pivot * pivot)
        image = -length if pivot > 0.0 else length  # the sign that avoids cancellation
        half = rest + pivot * pivot + abs(pivot) * length  # |v|^2 / 2
        v[k - 1] = pivot - image
        factors[k] = 1.0 / half if half > TINY else 0.0
        b[k - 1] = image
        _reflect(A, v, factors[k], k, p)
    b[0] = A[1, 0]


@kernel(fast=True)
def _reflect(A: Floats, v: Floats, factor: float, k: int, p: Floats) -> None:
    """Reflect the leading k rows: A - v p^T - p v^T with p = f (A v - (f/2) (v^T A v) v)."""
    overlap = 0.0
    for i in range(k):
        row = A[i]
        product = 0.0
        for j in range(k):
            product += row[j] * v[j]
        p[i] = factor * product
        overlap += p[i] * v[i]
    overlap *= 0.5 * factor
    for i in range(k):
        p[i] -= overlap * v[i]
    for i in range(k):
        row, v_i, p_i = A[i], v[i], p[i]
        for j in range(k):
            row[j] -= v_i * p[j] + p_i * v[j]


@kernel(fast=True)
def _minors(T: Floats, b: Floats, poles: Floats, leading: Floats, trailing: Floats) -> None:
    """Leading and trailing minors of T + t for every pole t.

    Eigenvalues between 10^-4.5 and 10^4.5 keep the product of 46 of them within the range of
    floating-point numbers.
    """
    side = T.shape[0]
    leading[0] = trailing[side] = 1.0
    leading[1], trailing[side - 1] = T[0, 0] + poles, T[side - 1, side - 1] + poles
    for i in range(1, side):
        bb = b[i - 1] ** 2
        for k in range(poles.shape[0]):
            leading[i + 1, k] = (T[i, i] + poles[k]) * leading[i, k] - bb * leading[i - 1, k]
    for i in range(side - 2, -1, -1):
        bb = b[i] ** 2
        for k in range(poles.shape[0]):
            trailing[i, k] = (T[i, i] + poles[k]) * trailing[i + 1, k] - bb * trailing[i + 2, k]


@kernel(fast=True)
def _sum_inverses(b: Floats, weights: Floats, leading: Floats, trailing: Floats, F: Floats) -> None:
    """F_ij = -sum_k w_k (T + t_k)^-1_ij, from the minors (see `_gog_patch_logs`)."""
    side = F.shape[0]
    leading[:side] *= weights / leading[side]
    np.dot(trailing[1:], leading[:side].T, F)  # (side, side); right only for i >= j
    for j in range(side):
        product = -1.0
        for i in range(j, side):
            if i > j:
                product *= -b[i - 1]
            F[i, j] *= product
            F[j, i] = F[i, j]


@kernel(fast=True)
def _transform_back(F: Floats, reflectors: Floats, factors: Floats, p: Floats) -> None:
    """Undo the reflections; below the diagonal F is right after every step."""
    side = F.shape[0]
    for k in range(2, side):
        v, factor = reflectors[k], factors[k]
        for j in range(k - 1):  # row k - 1 joins the part that must be whole
            F[j, k - 1] = F[k - 1, j]
        _reflect(F, v, factor, k, p)
        for i in range(k, side):  # rows outside the reflector are touched from one side
            row = F[i]
            overlap = 0.0
            for j in range(k):
                overlap += row[j] * v[j]
            overlap *= factor
            for j in range(k):
                row[j] -= overlap * v[j]


@kernel(fast=True)
def _store(F: Floats, off_diagonal_factor: float, out: Floats) -> None:
    """Write a half-vector; the determinant is 1, so the mean of the diagonal must vanish."""
    side, place = F.shape[0], 0
    mean = np.trace(F) / side
    for j in range(side):
        out[place] = F[j, j] - mean
        for i in range(j + 1, side):
            out[place + i - j] = off_diagonal_factor * F[i, j]
        place += side - j
