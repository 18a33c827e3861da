"""Exact search over embeddings in memory: a matrix product, then a proof that nobody was missed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.gallery.engines.base import Floats32
from resight.gallery.gathering import Gathering

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
_Question = tuple[Floats32, int, "NDArray[np.bool_] | None"]

_BLOCK = 4096  # rows of one product in a batch: its distances stay in the cache
_ROWS_AT_ONCE = 2**16
_WAIT = 0.005  # seconds that make one product of the queries of many threads
_GROUPED = 16  # values whose minimum stands for them when the k-th smallest is looked for
_SPARSE = 0.25  # below this share of allowed rows it pays to copy them together


class ExactIndex:
    """Nearest embeddings by squared Euclidean distance, exact to the last rounding of float64.

    Distances are first computed in float32, as ``|x|^2 - 2 x.q``. Everything that float32 cannot
    tell from the k-th nearest is then computed again in float64 as ``sum (x - q)^2`` and ordered by
    distance; equal distances keep the order of the rows.

    Parameters
    ----------
    embeddings : float32 array (n, r)
    """

    def __init__(self, embeddings: Floats32) -> None:
        self.embeddings = np.ascontiguousarray(embeddings, np.float32)  # (n, r)
        self._squares = np.einsum("ij,ij->i", self.embeddings, self.embeddings)  # (n,)
        self._longest = float(np.sqrt(self._squares.max(initial=0.0)))
        self.kept: dict[Any, Any] = {}  # what others worked out about these embeddings
        self._single: Gathering[_Question, tuple[Rows, Floats]] = Gathering(self._together, _WAIT)
        self.at_work = self._single.at_work

    def __len__(self) -> int:
        return len(self.embeddings)

    def distances(self, query: Floats32) -> Floats:
        """Return squared distances of one query to all rows, in float32 accuracy, (n,)."""
        near = self._squares - 2.0 * _product(self.embeddings, query) + float(query @ query)
        return np.maximum(near, 0.0).astype(np.float64)

    def distances_of_many(self, queries: Floats32) -> Floats:
        """Return squared distances of queries (m, r) to all rows, as `distances` does, (m, n)."""
        near = _product(-2.0 * queries, self.embeddings.T)
        near += self._squares
        near += np.einsum("ij,ij->i", queries, queries)[:, None]
        return np.maximum(near, 0.0).astype(np.float64)

    def search(
        self,
        queries: Floats32,
        k: int,
        allowed: NDArray[np.bool_] | None = None,
        within: Floats | None = None,
    ) -> list[tuple[Rows, Floats]]:
        """Return (rows, squared distances) of the k nearest allowed rows for each query.

        Parameters
        ----------
        queries : float32 array (m, r)
        k : int
            At least 1; fewer rows come back where fewer are allowed.
        allowed : bool array (n,), optional
        within : float64 array (m,), optional
            Squared distances beyond which nothing need be found.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        rows = None if allowed is None else np.flatnonzero(allowed)
        n = len(self) if rows is None else len(rows)
        if n == 0:
            return [(np.empty(0, np.intp), np.empty(0)) for _ in queries]
        if len(queries) == 1 and n >= _SPARSE * len(self):
            return [self._single.ask((queries[0], k, allowed))]
        near = self._candidates(queries, k, rows, within)
        return [
            self._ordered(q, candidates, k) for q, candidates in zip(queries, near, strict=True)
        ]

    def _slack(self, query: Floats32) -> float:
        """Bound how far a float32 value of ``|x|^2 - 2 x.q`` can be from the truth, twice.

        A product of r terms is off by at most r u |x||q| in any order of summation (Higham,
        Accuracy and Stability of Numerical Algorithms, section 3.1); u = half of float32's eps.
        """
        u = np.finfo(np.float32).eps / 2
        length = float(np.linalg.norm(query.astype(np.float64)))
        r = self.embeddings.shape[1] + 4
        return 2.0 * r * u * self._longest * (self._longest + 2.0 * length)

    def _together(self, questions: list[_Question]) -> list[tuple[Rows, Floats]]:
        """Answer single queries of several threads, each with its own k and allowed rows."""
        doubled = -2.0 * np.array([query for query, _, _ in questions])  # (m, r)
        near = np.empty((len(doubled), len(self)), np.float32)
        for start in range(0, len(self), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            # Few columns at the right are quicker than few rows at the left.
            near[:, rows] = _product(self.embeddings[rows], doubled.T).T
        near += self._squares
        found = []
        for row, (query, k, allowed) in zip(near, questions, strict=True):
            if allowed is not None:
                row[~allowed] = np.inf
            near_enough, _ = _within(row, k, self._slack(query))
            found.append(self._ordered(query, near_enough, k))
        return found

    def _candidates(
        self, queries: Floats32, k: int, rows: Rows | None, within: Floats | None
    ) -> list[Rows]:
        """Go through the rows in blocks, keeping what may still be among the k nearest."""
        m = len(queries)
        slack = np.array([self._slack(q) for q in queries], np.float32)
        bound = np.full(m, np.inf, np.float32)  # nothing above it can be among the k nearest
        if within is not None:
            lengths = np.einsum("ij,ij->i", queries, queries, dtype=np.float64)
            bound = (within - lengths + slack).astype(np.float32)
        kept = [np.empty(0, np.intp)] * m  # rows, and what they had in the product
        values = [np.empty(0, np.float32)] * m
        doubled = -2.0 * queries
        n = len(self) if rows is None else len(rows)
        for start in range(0, n, _BLOCK):
            stop = min(start + _BLOCK, n)
            part = slice(start, stop) if rows is None else rows[start:stop]
            near = _product(doubled, self.embeddings[part].T)  # (m, block)
            near += self._squares[part]
            promising = near <= bound[:, None]
            for i in np.flatnonzero(promising.any(axis=1)):
                hits = np.flatnonzero(promising[i])
                more = hits + start if rows is None else rows[hits + start]
                both, all_near = np.append(kept[i], more), np.append(values[i], near[i, hits])
                stay, tighter = _within(all_near, k, float(slack[i]))
                kept[i], values[i] = both[stay], all_near[stay]
                bound[i] = min(float(bound[i]), tighter)
        return kept

    def _ordered(self, query: Floats32, candidates: Rows, k: int) -> tuple[Rows, Floats]:
        candidates = np.sort(candidates)
        difference = self.embeddings[candidates].astype(np.float64) - query.astype(np.float64)
        distances = np.einsum("ij,ij->i", difference, difference)
        order = np.argsort(distances, kind="stable")[:k]
        return candidates[order], distances[order]


def _product(left: Floats32, right: Floats32) -> Floats32:
    """Multiply matrices, whatever the processor's flags say afterwards.

    OpenBLAS (0.3.31, AVX-512) multiplies rows of 5 numbers together with whatever lies on the stack
    and leaves that out of the result. The result is right, but where that was a signalling NaN
    NumPy warns of an invalid value.
    """
    with np.errstate(invalid="ignore"):
        product: Floats32 = left @ right
    return product


def _within(near: Floats32, k: int, slack: float) -> tuple[Rows, float]:
    """Return which are at most the k-th smallest plus the slack (infinite ones never), and that."""
    rows, n = np.arange(len(near)), len(near) // _GROUPED
    if k < n:  # k groups have a value up to the k-th of their minima: so has the k-th of all
        least = near[: n * _GROUPED].reshape(_GROUPED, n).min(axis=0)
        rows = np.flatnonzero(near <= np.partition(least, k - 1)[k - 1] + np.float32(slack))
    some = near[rows]
    bound = float(np.partition(some, k - 1)[k - 1] + np.float32(slack)) if k < len(near) else np.inf
    return rows[(some <= bound) & np.isfinite(some)], bound
