"""Products of many embeddings with a few queries, compiled: OpenBLAS takes up to twice as long."""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.gallery.engines.base import Floats32


@kernel(fast=True)
def products(embeddings: Floats32, queries: Floats32, out: Floats32) -> None:
    """Put products of embeddings (n, r) and queries (m, r) into out (m, n)."""
    whole, last = len(queries) // 4 * 4, len(embeddings) - 1
    for row in range(0, last + 1, 2):
        other = min(row + 1, last)
        x, y = embeddings[row], embeddings[other]
        for j in range(0, whole, 4):  # two rows and four queries: eight sums stay in registers
            p, q, r, s = queries[j], queries[j + 1], queries[j + 2], queries[j + 3]
            a = b = c = d = np.float32(0.0)
            e = f = g = h = np.float32(0.0)
            for i in range(len(x)):
                a += x[i] * p[i]
                b += x[i] * q[i]
                c += x[i] * r[i]
                d += x[i] * s[i]
                e += y[i] * p[i]
                f += y[i] * q[i]
                g += y[i] * r[i]
                h += y[i] * s[i]
            out[j, row], out[j + 1, row], out[j + 2, row], out[j + 3, row] = a, b, c, d
            out[j, other], out[j + 1, other], out[j + 2, other], out[j + 3, other] = e, f, g, h
        for j in range(whole, len(queries)):
            query = queries[j]
            a = b = np.float32(0.0)
            for i in range(len(x)):
                a += x[i] * query[i]
                b += y[i] * query[i]
            out[j, row], out[j, other] = a, b
