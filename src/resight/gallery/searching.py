"""From query embeddings to hits: exact in memory, or candidates from the engine scored again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resight.gallery.engines.base import Engine, Floats32
from resight.gallery.filters import Filter
from resight.gallery.index import ExactIndex
from resight.gallery.view import View, features_of

_MORE = 4  # candidates asked from an engine for each result wanted


@dataclass(frozen=True)
class Hit:
    """One sighting that was found.

    Attributes
    ----------
    rank : int
        From 1.
    distance : float
        The learned squared distance; smaller = more alike.
    probability : float or None
        That it is the same person, if the model is calibrated.
    verdict : "same" | "different" | None
        What was taught about it and the query.
    """

    rank: int
    id: str
    person: str
    camera: str
    time: float | None
    source: str
    distance: float
    probability: float | None
    verdict: Literal["same", "different"] | None = None


def search_view(
    engine: Engine, view: View, queries: Floats32, k: int, where: Filter, like: str
) -> list[list[Hit]]:
    """Return the k best hits of each query; `like` is the stored sighting that it comes from."""
    allowed = _allowed(view, where, like)
    k = min(k, len(view.table))
    if k == 0:
        return [[] for _ in queries]
    if view.index is not None:
        found = view.index.search(queries, k, allowed)
    else:
        found = [_by_engine(engine, view, query, k, where, allowed) for query in queries]
    return [_hits(view, rows, distances, like) for rows, distances in found]


def _allowed(view: View, where: Filter, like: str) -> NDArray[np.bool_] | None:
    if not where and not like:
        return None
    persons = view.persons if where.persons else view.table.persons
    mask = where.mask(view.table.cameras, view.table.times, persons)
    if like:
        mask[view.rows[like]] = False
    return mask


def _by_engine(
    engine: Engine,
    view: View,
    query: Floats32,
    k: int,
    where: Filter,
    allowed: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ask the engine for candidates and order them in float64."""
    generation = view.manifest.current
    if where.persons:  # labels are ours, not the engine's: few rows, embedded on the spot
        rows = np.flatnonzero(_allowed(view, where, ""))  # type: ignore[arg-type]
        ids = view.table.ids[rows].tolist()
        features = features_of(engine, ids, view.manifest.width)
        vectors = np.asarray(view.model.embed(features), np.float32)
    else:
        exact = not generation.indexed
        ids, vectors = engine.nearest(generation.number, query, _MORE * k + 1, where, exact=exact)
        rows = np.array([view.rows.get(sighting, -1) for sighting in ids], np.intp)
        visible = rows >= 0
        if allowed is not None:
            visible &= allowed[rows]
        rows, vectors = rows[visible], vectors[visible]
    if not len(rows):
        return rows, np.empty(0)
    order = np.argsort(rows)  # equal distances keep the order of the table
    [(local, distances)] = ExactIndex(vectors[order]).search(query[None], k)
    return rows[order][local], distances


def _hits(
    view: View, rows: NDArray[np.intp], distances: NDArray[np.float64], like: str
) -> list[Hit]:
    probabilities: Any = view.model.probability(distances) if len(rows) else None
    hits = []
    for rank, (row, distance) in enumerate(zip(rows.tolist(), distances.tolist(), strict=True), 1):
        time = float(view.table.times[row])
        sighting = str(view.table.ids[row])
        hits.append(
            Hit(
                rank=rank,
                id=sighting,
                person=view.labels.person(sighting),
                camera=str(view.table.cameras[row]),
                time=None if np.isnan(time) else time,
                source=str(view.table.sources[row]),
                distance=distance,
                probability=None if probabilities is None else float(probabilities[rank - 1]),
                verdict=view.labels.verdict(like, sighting) if like else None,
            )
        )
    return hits
