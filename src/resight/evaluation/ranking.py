"""From distances to ranks: who is a right answer, what is ignored, what a tie costs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

Ints = NDArray[np.intp]
UNKNOWN_PERSON = ""
COLUMNS = ("person", "first_rank", "ap", "inp", "candidates", "hits", "top", "top_distances")
"""Columns of `rankings.csv` that a result writes; callers may add their own."""
_BLOCK_ELEMENTS = 4_000_000  # distances sorted at once: bounds the memory of large galleries


class Options(TypedDict, total=False):
    """What rankings and measures take beside distances and people; see `resight.evaluation.cmc`."""

    query_cameras: ArrayLike | None
    gallery_cameras: ArrayLike | None
    junk: ArrayLike | None


class Answers(NamedTuple):
    """Validated labels: they say which gallery sightings are right and which are ignored.

    People and cameras are also kept as codes, which compare much faster than texts.
    """

    query_persons: NDArray[Any]
    persons: tuple[Ints, Ints]
    cameras: tuple[Ints, Ints] | None
    junk: NDArray[np.bool_]

    def masks(self, rows: slice) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return (right, ignored), each of shape (len(rows), n_gallery), for some queries."""
        same = np.equal.outer(self.persons[0][rows], self.persons[1])
        ignored = np.broadcast_to(self.junk, same.shape).copy()
        if self.cameras is not None:
            # Market-1501's rule: finding the query's own camera again is no achievement.
            ignored |= same & np.equal.outer(self.cameras[0][rows], self.cameras[1])
        return same & ~ignored, ignored


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
    Ties never flatter: among gallery sightings at equal distance the right ones rank last. Refused
    are distances that are not finite, and queries that have nothing to find.

    Examples
    --------
    >>> result = RankingResult.from_distances([[1.0, 2.0], [2.0, 1.0]], ["a", "a"], ["a", "b"])
    >>> result.cmc.tolist(), result.mean_average_precision
    ([0.5, 1.0], 0.75)
    """

    persons: NDArray[Any]
    hits: Ints
    offsets: Ints
    n_candidates: Ints
    top: Ints
    top_distances: NDArray[np.float64]

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.array(getattr(self, field.name))
            values.flags.writeable = False
            object.__setattr__(self, field.name, values)

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        query_persons: ArrayLike,
        gallery_persons: ArrayLike,
        *,
        depth: int = 20,
        **options: Unpack[Options],
    ) -> RankingResult:
        """Rank a gallery for every query; parameters as in `resight.evaluation.cmc`.

        `depth` says how much of each ranked list is kept; the measures never depend on it.
        """
        D = np.asarray(distances)
        labels = answers(D, query_persons, gallery_persons, **options)
        step = max(1, _BLOCK_ELEMENTS // len(labels.junk))
        blocks = [
            _rank_block(D[start : start + step], *labels.masks(slice(start, start + step)), depth)
            for start in range(0, len(D), step)
        ]
        hits, n_hits, n_candidates, top = map(np.concatenate, zip(*blocks, strict=True))
        _require_hits(labels.query_persons, n_hits)
        top_distances = np.take_along_axis(D, np.maximum(top, 0), axis=1).astype(float)
        top_distances[top < 0] = np.nan
        offsets = np.concatenate([[0], np.cumsum(n_hits)])
        return cls(labels.query_persons, hits, offsets, n_candidates, top, top_distances)

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def first_ranks(self) -> Ints:
        """Rank of the first right answer of each query, from 1."""
        return self.hits[self.offsets[:-1]]

    @property
    def average_precisions(self) -> NDArray[np.float64]:
        """Mean of the precision at each hit, for each query."""
        found = np.arange(len(self.hits)) - np.repeat(self.offsets[:-1], self._n_hits) + 1
        return np.add.reduceat(found / self.hits, self.offsets[:-1]) / self._n_hits

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
    def _n_hits(self) -> Ints:
        return np.diff(self.offsets)

    def to_rows(self) -> list[dict[str, str]]:
        """One row of text for each query (`COLUMNS`)."""
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


def answers(
    distances: NDArray[Any],
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    junk: ArrayLike | None = None,
) -> Answers:
    """Check labels and the shape of distances; say what is given and what is needed instead."""
    queries, gallery = np.asarray(query_persons), np.asarray(gallery_persons)
    if queries.ndim != 1 or gallery.ndim != 1 or not len(queries) or not len(gallery):
        raise InputError(
            f"query persons of shape {queries.shape} and gallery persons of shape {gallery.shape}; "
            "give one label per row, with at least one query and one gallery row"
        )
    if (queries.dtype.kind in "US") != (gallery.dtype.kind in "US"):
        raise InputError(
            f"query persons are {queries.dtype}, gallery persons {gallery.dtype}; "
            "strings and numbers never match: use the same type of label for both"
        )
    if queries.dtype.kind == "U" and np.any(queries == UNKNOWN_PERSON):
        raise InputError(
            f"{np.sum(queries == UNKNOWN_PERSON)} queries have no person label; label "
            "them or leave them out"
        )
    if (query_cameras is None) != (gallery_cameras is None):
        raise InputError("give cameras for both queries and gallery, or for neither")
    ignored = np.zeros(len(gallery), bool) if junk is None else np.asarray(junk)
    if ignored.dtype != bool:
        raise InputError(f"junk has dtype {ignored.dtype}; give one True or False per gallery row")
    _require_length("junk", ignored, len(gallery))
    cameras = None
    if query_cameras is not None and gallery_cameras is not None:
        asking, seen = np.asarray(query_cameras), np.asarray(gallery_cameras)
        _require_length("query cameras", asking, len(queries))
        _require_length("gallery cameras", seen, len(gallery))
        cameras = _coded(asking, seen)
    wanted = len(queries), len(gallery)
    if distances.shape != wanted:
        raise InputError(
            f"distances of shape {distances.shape} for {wanted[0]} queries and {wanted[1]} "
            f"gallery rows; the shape must be {wanted}"
        )
    return Answers(queries, _coded(queries, gallery), cameras, ignored)


def _rank_block(
    D: NDArray[Any], right: NDArray[np.bool_], ignored: NDArray[np.bool_], depth: int
) -> tuple[Ints, Ints, Ints, Ints]:
    if not np.isfinite(D).all():
        raise InputError("distances contain NaN or infinite values; a ranking needs finite numbers")
    order = _order(D, right, ignored)  # (n_block, n_gallery)
    rows, columns = np.nonzero(np.take_along_axis(right, order, axis=1))
    n_hits = np.bincount(rows, minlength=len(D))
    n_candidates = D.shape[1] - ignored.sum(axis=1)
    top = order[:, :depth].copy()
    top[np.arange(top.shape[1])[None, :] >= n_candidates[:, None]] = -1
    return columns + 1, n_hits, n_candidates, top


def _order(D: NDArray[Any], right: NDArray[np.bool_], ignored: NDArray[np.bool_]) -> Ints:
    """Order each row by distance, ignored sightings last, wrong before right in a tie."""
    values = np.where(ignored, np.inf, D)
    order = np.argsort(values, axis=1)
    ranked = np.take_along_axis(values, order, axis=1)
    equal = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < np.inf)
    tied = np.flatnonzero(equal.any(axis=1))
    # Sorting by several keys costs three times as much: only rows that have ties pay for it.
    order[tied] = np.lexsort((right[tied], values[tied]), axis=-1)
    return order


def _require_hits(query_persons: NDArray[Any], n_hits: Ints) -> None:
    if np.all(n_hits > 0):
        return
    missing = [str(person) for person in np.unique(query_persons[n_hits == 0])]
    shown = ", ".join(missing[:10]) + (", ..." if len(missing) > 10 else "")
    raise InputError(
        f"{len(missing)} query people have no match in the gallery: {shown}; add "
        "sightings of them from another camera or leave out these queries"
    )


def _require_length(what: str, values: NDArray[Any], n: int) -> None:
    if values.shape != (n,):
        raise InputError(f"{what} has shape {values.shape}, expected ({n},); give one per row")


def _coded(queries: NDArray[Any], gallery: NDArray[Any]) -> tuple[Ints, Ints]:
    codes = np.unique(np.concatenate([queries, gallery]), return_inverse=True)[1]
    return codes[: len(queries)], codes[len(queries) :]


def _join(values: NDArray[Any]) -> str:
    return " ".join(repr(value) for value in values.tolist())  # repr tells a float exactly
