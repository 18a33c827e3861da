"""Exact search over embeddings in memory: a matrix product, then a proof that nobody was missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.gallery.engines.base import Floats32

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Nearest = tuple[Rows, Floats]
Question = tuple[Floats32, int, "NDArray[np.bool_] | None"]  # a query, k, allowed rows

_BLOCK = 4096  # rows of one product: its values stay in the cache
_CELLS = 2**25  # values that are held at once
_GROUPED = 16  # values whose minimum stands for them when the k-th smallest is looked for
_MANY = 32  # queries from which OpenBLAS's product is as quick as our own
_SPARSE = 0.25  # below this share of allowed rows it pays to copy them together


class ExactIndex:
    """Nearest embeddings by squared Euclidean distance, exact to the last rounding of float64.

    Distances are first computed in float32, as ``|x|^2 - 2 x.q``. Everything that float32 cannot
    tell from the k-th nearest is then computed again in float64 as ``sum (x - q)^2`` and ordered by
    distance; equal distances keep the order of the rows.
    """

    def __init__(self, embeddings: Floats32) -> None:
        self.embeddings = np.ascontiguousarray(embeddings, np.float32)  # (n, r)
        self._squares = np.einsum("ij,ij->i", self.embeddings, self.embeddings)  # (n,)
        self._longest = float(np.sqrt(self._squares.max(initial=0.0)))
        self.kept: dict[Any, Any] = {}  # what others worked out about these embeddings

    def __len__(self) -> int:
        return len(self.embeddings)

    def distances(self, queries: Floats32, rows: Rows | None = None) -> Floats:
        """Return squared distances of queries (m, r) to all rows, or some, in float32 accuracy."""
        near = self._near(queries, rows)  # (m, n)
        near += np.einsum("ij,ij->i", queries, queries)[:, None]
        return np.maximum(near, 0.0, dtype=np.float64)

    def search(
        self, queries: Floats32, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> list[Nearest]:
        """Return (rows, squared distances) of the k nearest allowed rows for each query (m, r).

        `allowed` has a value for each row, (n,); fewer than k come back where fewer are allowed.
        """
        queries, rows = np.ascontiguousarray(queries, np.float32), None
        if allowed is not None and (len(queries) > 1 or self.sparse(allowed)):
            rows, allowed = np.flatnonzero(allowed), None
        return self.search_each([(query, k, allowed) for query in queries], rows)

    def _slack(self, query: Floats32) -> float:
        """Bound how far a float32 value of ``|x|^2 - 2 x.q`` can be from the truth, twice.

        A product of r terms is off by at most r u |x||q| in any order of summation (Higham,
        Accuracy and Stability of Numerical Algorithms, section 3.1); u = half of float32's eps.
        """
        u = np.finfo(np.float32).eps / 2
        length = float(np.linalg.norm(query.astype(np.float64)))
        r = self.embeddings.shape[1] + 4
        return 2.0 * r * u * self._longest * (self._longest + 2.0 * length)

    def sparse(self, allowed: NDArray[np.bool_] | None) -> bool:
        """Whether so few rows are allowed that no product of all is worth it."""
        return allowed is not None and bool(allowed.sum() < _SPARSE * len(allowed))

    def search_each(self, questions: Sequence[Question], rows: Rows | None = None) -> list[Nearest]:
        """Answer several searches, of all rows or some, by products of all their queries."""
        found, step = [], max(1, _CELLS // max(1, len(self if rows is None else rows)))
        for start in range(0, len(questions), step):
            part = questions[start : start + step]
            near = self._near(np.array([query for query, _, _ in part]), rows)
            for row, (query, k, allowed) in zip(near, part, strict=True):
                if allowed is not None:
                    row[~allowed] = np.inf
                found.append(self._best(query, k, row, rows))
        return found

    def _near(self, queries: Floats32, rows: Rows | None = None) -> Floats32:
        """Return ``|x|^2 - 2 x.q`` of all rows x, or some, and queries q, (m, n)."""
        multiply = _products_with(len(queries))
        near = np.empty((len(queries), len(self) if rows is None else len(rows)), np.float32)
        for start in range(0, near.shape[1], _BLOCK):
            part = slice(start, start + _BLOCK)
            some = part if rows is None else rows[part]
            multiply(self.embeddings[some], queries, near[:, part])
            near[:, part] *= -2.0
            near[:, part] += self._squares[some]
        return near

    def _best(self, query: Floats32, k: int, near: Floats32, rows: Rows | None = None) -> Nearest:
        """Return the k nearest in float64, by what `_near` found of all rows or some."""
        candidates = _within(near, k, self._slack(query))
        candidates = candidates if rows is None else rows[candidates]
        distances = squared(self.embeddings[candidates], query)
        order = np.argsort(distances, kind="stable")[:k]
        return candidates[order], distances[order]


def squared(embeddings: Floats32, query: Floats32) -> Floats:
    """Return squared distances of embeddings (n, r) to a query (r,), in float64."""
    difference = embeddings.astype(np.float64) - query.astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _products_with(n_queries: int) -> Callable[[Floats32, Floats32, Floats32], object]:
    """Return the quickest way to put products of embeddings and so many queries into (m, n)."""
    if n_queries == 1:
        return _dot_products
    if n_queries < _MANY:
        from resight.gallery._few_queries import products

        return products
    return _product


def warm_up() -> None:
    """Load what multiplies a few queries, for which the first of them would wait a second."""
    block = np.ones((2, 2), np.float32)
    for room in (np.empty((2, 2), np.float32), np.empty((2, 3), np.float32)):
        _products_with(2)(block, block, room[:, :2])  # whole or a part, as in `_near`


def _product(embeddings: Floats32, queries: Floats32, out: Floats32) -> None:
    """Multiply matrices, whatever the processor's flags say afterwards.

    OpenBLAS (0.3.31, AVX-512) multiplies rows of 5 numbers together with whatever lies on the stack
    and leaves that out of the result. The result is right, but where that was a signalling NaN
    NumPy warns of an invalid value.
    """
    with np.errstate(invalid="ignore"):
        out[:] = (embeddings @ queries.T).T  # few columns at the right are quicker than few rows


def _dot_products(embeddings: Floats32, queries: Floats32, out: Floats32) -> None:
    """Multiply by a single query, a dot product for each row."""
    if hasattr(np, "vecdot"):  # NumPy 2
        np.vecdot(embeddings, queries[0], out=out[0])
    else:
        np.einsum("ij,j->i", embeddings, queries[0], out=out[0])


def _within(near: Floats32, k: int, slack: float) -> Rows:
    """Return which are at most the k-th smallest plus the slack; infinite ones never."""
    rows, n = np.arange(len(near)), len(near) // _GROUPED
    if k < n:  # k groups have a value up to the k-th of their minima: so has the k-th of all
        least = near[: n * _GROUPED].reshape(_GROUPED, n).min(axis=0)
        rows = np.flatnonzero(near <= np.partition(least, k - 1)[k - 1] + np.float32(slack))
    some = near[rows]
    bound = np.partition(some, k - 1)[k - 1] + np.float32(slack) if k < len(near) else np.inf
    return rows[(some <= bound) & np.isfinite(some)]
