"""Inverse iteration with a symmetric band matrix, compiled, for several eigenvalues at once."""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.learners._base import Floats

_STEPS = 2


@kernel(fast=True)
def inverse_iteration(band: Floats, shifts: Floats, tiny: float, vectors: Floats) -> None:
    """Turn random vectors (n, k), in place, into unit eigenvectors near the shifts (k,).

    ``band[i, c]`` is entry (i + c, i) of the matrix. Rows are not exchanged: a pivot costs as many
    digits as it is small, few of those that float64 has beyond float32 but in rare cases, which
    `residuals` show. One below `tiny` is replaced.
    """
    n, width = band.shape[0], band.shape[1] - 1
    k = len(shifts)
    # Columns of the factor times their pivots, 1 / pivot first. Rows of zeros before the first,
    # and after the last row of X, spare every loop a check.
    C = np.empty((width + n, width + 1, k))
    C[:width] = 0.0
    entries, times = np.empty((width + 1, k)), np.empty(k)
    for i in range(n):
        for c in range(width + 1):
            entries[c] = band[i, c]
        entries[0] -= shifts
        for p in range(1, width + 1):
            before = C[width + i - p]
            inverse, own = before[0], before[p]
            for lane in range(k):
                times[lane] = own[lane] * inverse[lane]
            for c in range(width + 1 - p):
                entry, other = entries[c], before[p + c]
                for lane in range(k):
                    entry[lane] -= other[lane] * times[lane]
        pivot = entries[0]
        for lane in range(k):
            pivot[lane] = 1.0 / (pivot[lane] if abs(pivot[lane]) > tiny else tiny)
        C[width + i] = entries
    X = np.zeros((width + n + width, k))
    X[width : width + n] = vectors
    x, squares = np.empty(k), np.empty(k)
    for _ in range(_STEPS):
        for i in range(width, width + n):
            inverse, own = C[i, 0], X[i]
            for lane in range(k):
                own[lane] *= inverse[lane]
                x[lane] = own[lane]
            for c in range(1, width + 1):
                entry, other = C[i, c], X[i + c]
                for lane in range(k):
                    other[lane] -= entry[lane] * x[lane]
        squares[:] = 0.0
        for i in range(width + n - 1, width - 1, -1):
            x[:] = 0.0
            for c in range(1, width + 1):
                entry, other = C[i, c], X[i + c]
                for lane in range(k):
                    x[lane] += entry[lane] * other[lane]
            inverse, own = C[i, 0], X[i]
            for lane in range(k):
                own[lane] -= x[lane] * inverse[lane]
                squares[lane] += own[lane] * own[lane]
        X /= np.sqrt(squares)
    vectors[:] = X[width : width + n]


@kernel(fast=True)
def residuals(band: Floats, shifts: Floats, vectors: Floats) -> Floats:
    """Return |B v - v shift| of each vector, (k,)."""
    n, k = vectors.shape
    squares, rest = np.zeros(k), np.empty(k)
    for i in range(n):
        for lane in range(k):
            rest[lane] = (band[i, 0] - shifts[lane]) * vectors[i, lane]
        for c in range(1, band.shape[1]):
            for j, entry in ((i + c, band[i, c]), (i - c, band[max(i - c, 0), c])):
                if 0 <= j < n:
                    for lane in range(k):
                        rest[lane] += entry * vectors[j, lane]
        for lane in range(k):
            squares[lane] += rest[lane] * rest[lane]
    return np.sqrt(squares)
