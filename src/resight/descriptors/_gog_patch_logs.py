"""Logarithms of many 9 x 9 patch matrices side by side, compiled, without eigenvectors.

1. Householder reflections make each matrix P tridiagonal: P = Q T Q^T.
2. log T = C - sum_k w_k (T + t_k)^-1 with the fixed poles of gog_poles.json. The inverse of a
   tridiagonal matrix A with diagonal a and off-diagonal b follows from its leading minors
   l_0..l_n and its trailing minors r_0..r_n (r_i of the rows from i on): for i <= j,
   (A^-1)_ij = (-b_i) ... (-b_{j-1}) l_i r_{j+1} / l_n. (R. Usmani, "Inversion of a tridiagonal
   Jacobi matrix", Linear Algebra and its Applications 212/213, 1994.)
3. The reflections are undone: log P = Q (log T) Q^T.

Every step works on `LANES` matrices at once: entry e of all of them lies in one row of a flat
workspace, and `unroll` writes out the loops over rows and columns, which leaves one loop over
lanes that the compiler turns into vector instructions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from resight._compile import kernel
from resight.descriptors._gog_unroll import registers, static, unroll
from resight.images.colour import Floats

SIDE = 9
LANES = 16
# Rows of the workspace; entry (i, j) of a matrix, i >= j, is at its start + SIDE * i + j.
MATRIX = 0
REFLECTORS = MATRIX + SIDE * SIDE
INVERSES = REFLECTORS + SIDE * SIDE
FACTORS = INVERSES + SIDE * SIDE
DIAGONAL = FACTORS + SIDE
OFF_DIAGONAL = DIAGONAL + SIDE
N_ROWS = OFF_DIAGONAL + SIDE
TINY = 1e-200  # reflectors shorter than this (squared) have nothing to reflect


@kernel(fast=True)
def patch_logarithms(
    sums: Floats,
    entries: NDArray[np.int64],
    kept: NDArray[np.int64],
    poles: Floats,
    weights: Floats,
    epsilon: float,
    least_trace: float,
    off_diagonal: float,
) -> Floats:
    """Embed the Gaussian of every patch and take its logarithm, (m, n_patches).

    `sums` (n_pairs, n_patches) come from `patch_sums`; `entries` (9, 9) tells which row of them is
    entry (i, j), i >= j, of the matrix, whose index 8 is the constant feature 1. `kept` (m, 2) are
    the entries of the logarithm to return: a feature that is always 0 is decoupled from all others,
    so leaving it out gives the logarithm of the smaller matrix. The number of poles is even, and
    that of patches a multiple of `LANES`.
    """
    n_patches = sums.shape[1]
    logs = np.empty((kept.shape[0], n_patches))
    work = np.empty(N_ROWS * LANES)
    for first in range(0, n_patches, LANES):
        for i in range(SIDE):
            for j in range(i + 1):
                row = (MATRIX + SIDE * i + j) * LANES
                work[row : row + LANES] = sums[entries[i, j], first : first + LANES]
        _embed(work, epsilon, least_trace)
        _tridiagonalise(work)
        work[INVERSES * LANES : FACTORS * LANES] = 0.0
        for k in range(0, poles.shape[0], 2):
            _add_inverses(work, poles[k], weights[k], poles[k + 1], weights[k + 1])
        _transform_back(work)
        _store(work, kept, off_diagonal, logs[:, first : first + LANES])
    return logs


@kernel(fast=True)
@unroll
def _embed(work: Floats, epsilon: float, least_trace: float) -> None:
    """Turn sums of products into [[S + mu mu^T, mu], [mu^T, 1]], scaled to the poles' interval.

    With M the sums and n pixels, S + mu mu^T = (M - mu mu^T) / (n - 1). The eigenvalues lie
    below the trace and above r / (2 + |mu|^2), where r is what is added to the diagonal of S;
    they are scaled by one over the geometric mean of the two. The features are at most about
    1, so |mu|^2 < 8 and the ratio of the bounds stays below 10^7.
    """
    for lane in range(LANES):
        mean = registers()
        n = work[(MATRIX + SIDE * SIDE - 1) * LANES + lane]
        squares = 0.0
        trace = 0.0
        for i in static(SIDE - 1):
            mean[i] = work[(MATRIX + SIDE * (SIDE - 1) + i) * LANES + lane] / n
            squares += mean[i] * mean[i]
            trace += work[(MATRIX + SIDE * i + i) * LANES + lane] - n * mean[i] * mean[i]
        trace = trace / (n - 1.0)
        added = epsilon * max(trace, least_trace)
        upper = 1.0 + squares + trace + (SIDE - 1) * added
        scale = math.sqrt((2.0 + squares) / (upper * added))
        for i in static(SIDE - 1):
            for j in static(i + 1):
                place = (MATRIX + SIDE * i + j) * LANES + lane
                entry = (work[place] - mean[i] * mean[j]) / (n - 1.0)
                if i == j:
                    entry += added
                work[place] = scale * entry
            work[(MATRIX + SIDE * (SIDE - 1) + i) * LANES + lane] = scale * mean[i]
        work[(MATRIX + SIDE * SIDE - 1) * LANES + lane] = scale


@kernel(fast=True)
@unroll
def _tridiagonalise(work: Floats) -> None:
    """Reduce from the last row up: row k gets its reflector 1 - f v v^T of the columns before k."""
    for lane in range(LANES):
        A = registers()
        v = registers()
        p = registers()
        for i in static(SIDE):
            for j in static(i + 1):
                A[i, j] = work[(MATRIX + SIDE * i + j) * LANES + lane]
        for k in static(SIDE - 1, 1, -1):
            rest = 0.0
            for j in static(k - 1):
                v[j] = A[k, j]
                rest += v[j] * v[j]
                work[(REFLECTORS + SIDE * k + j) * LANES + lane] = v[j]
            pivot = A[k, k - 1]
            length = math.sqrt(rest + pivot * pivot)
            image = -length if pivot > 0.0 else length  # the sign that avoids cancellation
            half = rest + pivot * pivot + abs(pivot) * length  # |v|^2 / 2
            factor = 1.0 / half if half > TINY else 0.0
            v[k - 1] = pivot - image
            work[(REFLECTORS + SIDE * k + k - 1) * LANES + lane] = v[k - 1]
            work[(FACTORS + k) * LANES + lane] = factor
            work[(DIAGONAL + k) * LANES + lane] = A[k, k]
            work[(OFF_DIAGONAL + k - 1) * LANES + lane] = image
            # A <- H A H = A - v p^T - p v^T with p = f (A v - (f/2) (v^T A v) v)
            overlap = 0.0
            for i in static(k):
                p[i] = 0.0
                for j in static(k):
                    p[i] += A[max(i, j), min(i, j)] * v[j]
                overlap += p[i] * v[i]
            overlap = 0.5 * factor * overlap
            for i in static(k):
                p[i] = factor * (p[i] - overlap * v[i])
            for i in static(k):
                for j in static(i + 1):
                    A[i, j] -= v[i] * p[j] + p[i] * v[j]
        work[DIAGONAL * LANES + lane] = A[0, 0]
        work[(DIAGONAL + 1) * LANES + lane] = A[1, 1]
        work[OFF_DIAGONAL * LANES + lane] = A[1, 0]


@kernel(fast=True)
@unroll
def _add_inverses(work: Floats, pole_1: float, w_1: float, pole_2: float, w_2: float) -> None:
    """Add w l_i r_{j+1} / l_n of two poles; the products of b are the same for all poles."""
    for lane in range(LANES):
        square = registers()
        lead_1 = registers()
        lead_2 = registers()
        trail_1 = registers()
        trail_2 = registers()
        lead_1[0] = lead_2[0] = trail_1[SIDE] = trail_2[SIDE] = 1.0
        for i in static(SIDE):
            a = work[(DIAGONAL + i) * LANES + lane]
            lead_1[i + 1] = (a + pole_1) * lead_1[i]
            lead_2[i + 1] = (a + pole_2) * lead_2[i]
            if i > 0:
                square[i] = work[(OFF_DIAGONAL + i - 1) * LANES + lane] ** 2
                lead_1[i + 1] -= square[i] * lead_1[i - 1]
                lead_2[i + 1] -= square[i] * lead_2[i - 1]
        for i in static(SIDE - 1, 0, -1):  # r_0 is not needed
            a = work[(DIAGONAL + i) * LANES + lane]
            trail_1[i] = (a + pole_1) * trail_1[i + 1]
            trail_2[i] = (a + pole_2) * trail_2[i + 1]
            if i < SIDE - 1:
                trail_1[i] -= square[i + 1] * trail_1[i + 2]
                trail_2[i] -= square[i + 1] * trail_2[i + 2]
        share_1 = w_1 / lead_1[SIDE]
        share_2 = w_2 / lead_2[SIDE]
        for j in static(SIDE):
            left_1 = share_1 * lead_1[j]
            left_2 = share_2 * lead_2[j]
            for i in static(j, SIDE):
                work[(INVERSES + SIDE * i + j) * LANES + lane] += (
                    left_1 * trail_1[i + 1] + left_2 * trail_2[i + 1]
                )


@kernel(fast=True)
@unroll
def _transform_back(work: Floats) -> None:
    """Put the signs and products of b onto the sum of inverses, then undo the reflections."""
    for lane in range(LANES):
        F = registers()
        v = registers()
        p = registers()
        for j in static(SIDE):
            product = -1.0
            for i in static(j, SIDE):
                if i > j:
                    product = -product * work[(OFF_DIAGONAL + i - 1) * LANES + lane]
                F[i, j] = product * work[(INVERSES + SIDE * i + j) * LANES + lane]
        for k in static(2, SIDE):
            factor = work[(FACTORS + k) * LANES + lane]
            overlap = 0.0
            for i in static(k):
                v[i] = work[(REFLECTORS + SIDE * k + i) * LANES + lane]
            for i in static(k):
                p[i] = 0.0
                for j in static(k):
                    p[i] += F[max(i, j), min(i, j)] * v[j]
                overlap += p[i] * v[i]
            overlap = 0.5 * factor * overlap
            for i in static(k):
                p[i] = factor * (p[i] - overlap * v[i])
            for i in static(k):
                for j in static(i + 1):
                    F[i, j] -= v[i] * p[j] + p[i] * v[j]
            for i in static(k, SIDE):  # rows outside the reflector are touched from one side
                overlap = 0.0
                for j in static(k):
                    overlap += F[i, j] * v[j]
                overlap = factor * overlap
                for j in static(k):
                    F[i, j] -= overlap * v[j]
        for i in static(SIDE):
            for j in static(i + 1):
                work[(MATRIX + SIDE * i + j) * LANES + lane] = F[i, j]


@kernel(fast=True)
def _store(work: Floats, kept: NDArray[np.int64], off_diagonal: float, logs: Floats) -> None:
    """Write half-vectors; the determinant is 1, so the mean of the diagonal must vanish."""
    mean = np.zeros(LANES)
    side = 0
    for i, j in kept:
        if i == j:
            side += 1
            row = (MATRIX + SIDE * i + i) * LANES
            for lane in range(LANES):
                mean[lane] += work[row + lane]
    for entry in range(kept.shape[0]):
        i, j = kept[entry]
        row = (MATRIX + SIDE * i + j) * LANES
        factor = 1.0 if i == j else off_diagonal
        shift = 1.0 / side if i == j else 0.0
        for lane in range(LANES):
            logs[entry, lane] = factor * work[row + lane] - shift * mean[lane]
