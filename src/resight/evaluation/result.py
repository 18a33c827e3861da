"""The outcome of ranking as one object: counted, listed, saved and restored, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.evaluation.ranking import answers, rank

COLUMNS = ("person", "first_rank", "ap", "inp", "candidates", "hits", "top", "top_distances")
"""Columns of `rankings.csv` that a result writes; callers may add their own."""


@dataclass(frozen=True, eq=False)
class RankingResult:
    """Where every query found its person; built once from distances.

    Attributes
    ----------
    persons : array of shape (n_queries,)
        Whom each query shows.
    hits : int array of shape (n_hits,)
        Ranks (from 1) of all right gallery sightings, query after query.
    offsets : int array of shape (n_queries + 1,)
        The hits of query i are ``hits[offsets[i]:offsets[i + 1]]``.
    n_candidates : int array of shape (n_queries,)
        How many gallery sightings were ranked for each query.
    top : int array of shape (n_queries, depth)
        Head of each ranked list as gallery rows; -1 where the list is shorter.
    top_distances : float array of shape (n_queries, depth)
        Their distances; NaN where the list is shorter.

    Notes
    -----
    Ties never flatter: among gallery sightings at equal distance the right ones rank last.

    Examples
    --------
    >>> result = RankingResult.from_distances([[1.0, 2.0], [2.0, 1.0]], ["a", "a"], ["a", "b"])
    >>> result.cmc.tolist(), result.mean_average_precision
    ([0.5, 1.0], 0.75)
    """

    persons: NDArray[Any]
    hits: NDArray[np.intp]
    offsets: NDArray[np.intp]
    n_candidates: NDArray[np.intp]
    top: NDArray[np.intp]
    top_distances: NDArray[np.float64]

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.array(getattr(self, field.name))
            values.flags.writeable = False
            object.__setattr__(self, field.name, values)
        _check(self)

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        query_persons: ArrayLike,
        gallery_persons: ArrayLike,
        *,
        query_cameras: ArrayLike | None = None,
        gallery_cameras: ArrayLike | None = None,
        junk: ArrayLike | None = None,
        depth: int = 20,
    ) -> RankingResult:
        """Rank a gallery for every query; parameters as in `resight.evaluation.cmc`.

        `depth` says how much of each ranked list is kept; the measures never depend on it.
        """
        D = np.asarray(distances)
        labels = answers(query_persons, gallery_persons, query_cameras, gallery_cameras, junk)
        ranks = rank(D, labels, depth)
        top_distances = np.take_along_axis(D, np.maximum(ranks.top, 0), axis=1).astype(float)
        top_distances[ranks.top < 0] = np.nan
        return cls(labels.query_persons, *ranks, top_distances)

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def first_ranks(self) -> NDArray[np.intp]:
        """Rank of the first right answer of each query, from 1."""
        return self.hits[self.offsets[:-1]]

    @property
    def average_precisions(self) -> NDArray[np.float64]:
        """Mean of the precision at each hit, for each query."""
        found = np.arange(len(self.hits)) - np.repeat(self.offsets[:-1], self._n_hits) + 1
        means: NDArray[np.float64] = (
            np.add.reduceat(found / self.hits, self.offsets[:-1]) / self._n_hits
        )
        return means

    @property
    def inverse_negative_penalties(self) -> NDArray[np.float64]:
        """Number of hits over the rank of the last one, for each query."""
        return np.asarray(self._n_hits / self.hits[self.offsets[1:] - 1])

    @property
    def cmc(self) -> NDArray[np.float64]:
        """Fraction of queries answered within the first 1, 2, ... candidates."""
        counts = np.bincount(self.first_ranks - 1, minlength=int(self.n_candidates.max()))
        return np.asarray(np.cumsum(counts) / len(self))

    def rank(self, k: int) -> float:
        """Fraction of queries answered within the first k candidates."""
        return float(np.mean(self.first_ranks <= k))

    @property
    def mean_average_precision(self) -> float:
        """Mean over queries of `average_precisions`."""
        return float(self.average_precisions.mean())

    @property
    def mean_inverse_negative_penalty(self) -> float:
        """Mean over queries of `inverse_negative_penalties`."""
        return float(self.inverse_negative_penalties.mean())

    @property
    def _n_hits(self) -> NDArray[np.intp]:
        return np.diff(self.offsets)

    def to_rows(self) -> list[dict[str, str]]:
        """One row of text for each query (`COLUMNS`), from which `from_rows` restores all."""
        first, ap, inp = self.first_ranks, self.average_precisions, self.inverse_negative_penalties
        rows = []
        for i, person in enumerate(self.persons):
            kept = self.top[i] >= 0
            values = (
                str(person),
                str(first[i]),
                f"{ap[i]:.6f}",
                f"{inp[i]:.6f}",
                str(self.n_candidates[i]),
                _join(self.hits[self.offsets[i] : self.offsets[i + 1]]),
                _join(self.top[i][kept]),
                _join(self.top_distances[i][kept]),
            )
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, str]]) -> RankingResult:
        """Restore a result from rows that `to_rows` made; further columns are ignored."""
        given = list(rows)
        missing = [name for name in COLUMNS if given and name not in given[0]]
        if not given or missing:
            raise InputError(
                f"no rows, or columns missing: {', '.join(missing) or 'all'}; a ranking needs "
                f"the columns {', '.join(COLUMNS)}, as resight writes them to rankings.csv"
            )
        try:
            hits = [np.array(row["hits"].split(), np.intp) for row in given]
            top = [np.array(row["top"].split(), np.intp) for row in given]
            distances = [np.array(row["top_distances"].split(), float) for row in given]
            candidates = np.array([row["candidates"] for row in given]).astype(np.intp)
        except ValueError as error:
            raise InputError(
                f"a row of the ranking has a value that is not a number: {error}"
            ) from error
        depth = max(map(len, top + distances))
        return cls(
            np.array([row["person"] for row in given]),
            np.concatenate(hits),
            np.concatenate([[0], np.cumsum([len(part) for part in hits])]),
            candidates,
            np.array([np.pad(p, (0, depth - len(p)), constant_values=-1) for p in top]),
            np.array([np.pad(p, (0, depth - len(p)), constant_values=np.nan) for p in distances]),
        )


def _join(values: NDArray[Any]) -> str:
    return " ".join(repr(value) for value in values.tolist())  # repr of a float restores it exactly


def _check(result: RankingResult) -> None:
    """Refuse parts that cannot come from a ranking, such as a file edited by hand."""
    n, offsets, hits = len(result.persons), result.offsets, result.hits
    problems = {
        "there are no queries": n == 0,
        "offsets do not match the hits": offsets.shape != (n + 1,)
        or offsets[0] != 0
        or offsets[-1] != len(hits)
        or bool(np.any(np.diff(offsets) < 1)),
        "top does not match its distances": result.top.shape != result.top_distances.shape
        or result.top.shape[:1] != (n,)
        or bool(np.any((result.top < 0) != np.isnan(result.top_distances))),
        "candidates are not one per query": result.n_candidates.shape != (n,),
    }
    wrong = [problem for problem, present in problems.items() if present]
    if not wrong:
        owner = np.repeat(np.arange(n), np.diff(offsets))
        rises = np.diff(hits) > 0
        if np.any(hits < 1) or np.any(hits > result.n_candidates[owner]):
            wrong.append("a hit is outside the ranked list")
        if not np.all(rises | (np.diff(owner) > 0)):
            wrong.append("the hits of a query are not in ascending order")
    if wrong:
        raise InputError(f"this is not a valid ranking: {'; '.join(wrong)}")
