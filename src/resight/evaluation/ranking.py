"""From distances to ranks: who is a right answer, what is ignored, what a tie costs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError

UNKNOWN_PERSON = ""
_BLOCK_ELEMENTS = 4_000_000  # distances sorted at once: bounds the memory of large galleries


class Ranks(NamedTuple):
    """Where right answers stand, and the head of each ranked list: as in `RankingResult`."""

    hits: NDArray[np.intp]
    offsets: NDArray[np.intp]
    n_candidates: NDArray[np.intp]
    top: NDArray[np.intp]


class Answers(NamedTuple):
    """Validated labels: they say which gallery sightings are right and which are ignored.

    People and cameras are also kept as codes, which compare much faster than texts.
    """

    query_persons: NDArray[Any]
    persons: tuple[NDArray[np.intp], NDArray[np.intp]]
    cameras: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    junk: NDArray[np.bool_]

    def masks(self, rows: slice) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return (right, ignored), each of shape (len(rows), n_gallery), for some queries."""
        same = _equal(self.persons, rows)
        ignored = np.broadcast_to(self.junk, same.shape).copy()
        if self.cameras is not None:
            # Market-1501's rule: finding the query's own camera again is no achievement.
            ignored |= same & _equal(self.cameras, rows)
        return same & ~ignored, ignored


def answers(
    query_persons: ArrayLike,
    gallery_persons: ArrayLike,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    junk: ArrayLike | None = None,
) -> Answers:
    """Check labels and say what is given and what is needed when they do not fit."""
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
    return Answers(queries, _coded(queries, gallery), cameras, ignored)


def rank(distances: ArrayLike, labels: Answers, depth: int = 0) -> Ranks:
    """Rank the gallery for every query; among equal distances a right answer comes last.

    `depth` says how much of each ranked list is kept in ``top``. Refused are shapes that disagree,
    distances that are not finite, and queries that have nothing to find.
    """
    D = np.asarray(distances)
    n_queries, n_gallery = map(len, labels.persons)
    if D.shape != (n_queries, n_gallery):
        raise InputError(
            f"distances of shape {D.shape} for {n_queries} queries and {n_gallery} gallery rows; "
            f"the shape must be ({n_queries}, {n_gallery})"
        )
    step = max(1, _BLOCK_ELEMENTS // n_gallery)
    blocks = [
        _rank_block(D[start : start + step], *labels.masks(slice(start, start + step)), depth)
        for start in range(0, n_queries, step)
    ]
    hits, n_hits, n_candidates, top = map(np.concatenate, zip(*blocks, strict=True))
    _require_hits(labels.query_persons, n_hits)
    return Ranks(hits, np.concatenate([[0], np.cumsum(n_hits)]), n_candidates, top)


def _rank_block(
    D: NDArray[Any], right: NDArray[np.bool_], ignored: NDArray[np.bool_], depth: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    if not np.isfinite(D).all():
        raise InputError("distances contain NaN or infinite values; a ranking needs finite numbers")
    order = _order(D, right, ignored)  # (n_block, n_gallery)
    rows, columns = np.nonzero(np.take_along_axis(right, order, axis=1))
    n_hits = np.bincount(rows, minlength=len(D))
    n_candidates = D.shape[1] - ignored.sum(axis=1)
    top = order[:, :depth].copy()
    top[np.arange(top.shape[1])[None, :] >= n_candidates[:, None]] = -1
    return columns + 1, n_hits, n_candidates, top


def _order(
    D: NDArray[Any], right: NDArray[np.bool_], ignored: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Order each row by distance, ignored sightings last, wrong before right in a tie."""
    values = np.where(ignored, np.inf, D)
    order = np.argsort(values, axis=1)
    ranked = np.take_along_axis(values, order, axis=1)
    equal = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < np.inf)
    tied = np.flatnonzero(equal.any(axis=1))
    # Sorting by several keys costs three times as much: only rows that have ties pay for it.
    order[tied] = np.lexsort((right[tied], values[tied]), axis=-1)
    return order


def _require_hits(query_persons: NDArray[Any], n_hits: NDArray[np.intp]) -> None:
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


def _coded(
    queries: NDArray[Any], gallery: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    codes = np.unique(np.concatenate([queries, gallery]), return_inverse=True)[1]
    return codes[: len(queries)], codes[len(queries) :]


def _equal(codes: tuple[NDArray[np.intp], NDArray[np.intp]], rows: slice) -> NDArray[np.bool_]:
    return np.equal(codes[0][rows, None], codes[1][None, :])
