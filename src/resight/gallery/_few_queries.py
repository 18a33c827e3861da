"""Products of many embeddings with a few queries, compiled: OpenBLAS takes twice as long."""

from __future__ import annotations

import numpy as np

from resight._compile import kernel
from resight.gallery.engines.base import Floats32


@kernel(fast=True)
def products(embeddings: Floats32, queries: Floats32, out: Floats32) -> None:
    """Put products of embeddings (n, r) and queries (m, r) into out (m, n)."""
    whole = len(queries) // 4 * 4
    for row in range(len(embeddings)):
        x = embeddings[row]
        for j in range(0, whole, 4):  # x is read once for as many sums as stay in registers
            first, second = queries[j], queries[j + 1]
            third, fourth = queries[j + 2], queries[j + 3]
            a = b = c = d = np.float32(0.0)
            for i in range(len(x)):
                a += x[i] * first[i]
                b += x[i] * second[i]
                c += x[i] * third[i]
                d += x[i] * fourth[i]
            out[j, row], out[j + 1, row], out[j + 2, row], out[j + 3, row] = a, b, c, d
        for j in range(whole, len(queries)):
            query, a = queries[j], np.float32(0.0)
            for i in range(len(x)):
                a += x[i] * query[i]
            out[j, row] = a
