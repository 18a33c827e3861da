"""Clustering sightings into people by pair evidence.

The evidence of two sightings is the log-odds that they show one person: log r(z) of the model's
calibration (distances relative to what is usual between the sighting and the other's camera, mean
of both directions) plus the prior log-odds of a pair, which is estimated from the sightings
themselves. Clusters are joined as long as the mean evidence between them is positive (average
linkage), and never where somebody said "different". Only nearest neighbours are looked at to find
parts of the gallery that can be clustered by themselves, so that nothing grows with the square of
its size but blocked matrix products.

Without calibration a rule stands in for log r: relative distances below `CLOSE` count as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.gallery.engines.base import Floats32
from resight.gallery.index import Floats, Rows

Pairs = Sequence[tuple[int, int]]
CLOSE = 0.25  # share of the median distance below which an uncalibrated pair is joined
_STEEP = 8.0  # how quickly evidence of that rule falls with log z
_SAMPLE = 200  # units of a camera that its median distance is taken over
_CELLS = 2**21  # distances in memory at once: they stay in the cache
_OFTEN = 0.05  # no larger share of the pairs shows one person
_NEIGHBOURS = 64  # of a unit that are looked at, at most
_LARGE = 3000  # units that are clustered together at most
_MOST = 50.0  # evidence beyond which more makes no difference
_NEVER = 1e6  # distance of what was said to be different
_ROUNDS = 20


@dataclass(frozen=True)
class Units:
    """What is clustered: tracks, and sightings without a track.

    The mean squared distance of the sightings of two units is that of the means plus both spreads.
    """

    means: Floats32  # (m, r)
    spreads: Floats32  # (m,), mean squared distance of a unit's sightings to their mean
    cameras: Rows  # (m,), codes from 0 on

    @classmethod
    def of(cls, embeddings: Floats32, units: Rows, cameras: Rows) -> Units:
        """Collect sightings (n, r) into units, numbered from 0 on."""
        counts = np.bincount(units)
        order = np.argsort(units, kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        means = np.add.reduceat(embeddings[order], starts, axis=0) / counts[:, None]
        squares = np.einsum("ij,ij->i", embeddings, embeddings)
        spreads = np.bincount(units, squares) / counts - np.einsum("ij,ij->i", means, means)
        spreads = np.maximum(spreads, 0.0).astype(np.float32)
        return cls(np.asarray(means, np.float32), spreads, cameras[order][starts])

    @cached_property
    def _squares(self) -> Floats32:
        return np.asarray(np.einsum("ij,ij->i", self.means, self.means) + self.spreads)

    def distances(self, rows: Any, columns: Any) -> Floats32:
        """Return mean squared distances between units, (n_rows, n_columns)."""
        d: Floats32 = (-2.0 * self.means[rows]) @ self.means[columns].T
        d += self._squares[rows][:, None]
        d += self._squares[columns]
        return np.maximum(d, np.finfo(np.float32).tiny, out=d)


class Evidence:
    """Log-odds that pairs of units show one person."""

    def __init__(self, units: Units, calibration: Any | None) -> None:
        self.units, self._calibration = units, calibration
        self.prior = 0.0  # of a pair, as log-odds
        medians = [self._medians(camera) for camera in range(int(units.cameras.max()) + 1)]
        self.scales = np.stack(medians, axis=1)  # (m, n_cameras)

    def _medians(self, camera: int) -> Floats32:
        """Return the median distance of each unit to the units of a camera, or of all."""
        own = np.flatnonzero(self.units.cameras == camera)
        own = own if len(own) >= 10 else np.arange(len(self.units.cameras))
        sample = own[:: max(1, len(own) // _SAMPLE)][:_SAMPLE]
        step = max(1, _CELLS // len(sample))
        everything = range(0, len(self.units.means), step)
        parts = [self.units.distances(slice(i, i + step), sample) for i in everything]
        return np.concatenate([np.median(part, axis=1) for part in parts])

    def log_ratios(self, z: Floats) -> Floats:
        """Return log r(z), or what stands in for it."""
        if self._calibration is not None:
            return np.asarray(self._calibration.log_ratios(z), float)
        return np.asarray(_STEEP * (np.log(CLOSE) - np.log(z)))

    def pairs(self, distances: Any, rows: Rows, columns: Rows) -> Floats:
        """Return the log-odds of pairs by their distances; arrays of one shape."""
        cameras, scales = self.units.cameras, self.scales
        there = self.log_ratios(distances / scales[rows, cameras[columns]])
        back = self.log_ratios(distances / scales[columns, cameras[rows]])
        return np.minimum(0.5 * (there + back) + self.prior, _MOST)

    def neighbours(self, on_step: Callable[[float], None]) -> tuple[Rows, Rows, Floats]:
        """Return rows, columns and log-odds of all pairs that may show one person.

        These are the pairs that are near enough in one of the two directions, of a unit the
        nearest ones.
        """
        units, m, limit = self.units, len(self.units.means), self._limit()
        order = np.argsort(units.cameras, kind="stable")
        ends = np.searchsorted(units.cameras[order], np.arange(self.scales.shape[1] + 1))
        columns = Units(units.means[order], units.spreads[order], units.cameras[order])
        places = np.argsort(order)
        found: list[tuple[Rows, Rows, Floats32]] = []
        step = max(1, _CELLS // m)
        for start in range(0, m, step):
            block = np.arange(start, min(start + step, m))
            d = columns.distances(places[block], slice(None))  # (block, m), cameras side by side
            near = np.empty(d.shape, bool)
            for camera, (first, last) in enumerate(pairwise(ends.tolist())):
                scale = limit * self.scales[block, camera]
                np.less(d[:, first:last], scale[:, None], out=near[:, first:last])
            row, column = np.nonzero(near)
            row, column, values = _nearest(row, column, d[row, column])
            found.append((block[row], order[column], values))
            on_step((start + len(block)) / m)
        rows, others, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        two = rows != others
        rows, others, distances = rows[two], others[two], distances[two]
        self._estimate_prior(rows, others, distances)
        return rows, others, self.pairs(distances, rows, others)

    def _limit(self) -> float:
        """Return the relative distance beyond which no prior makes a pair one person."""
        least = 0.0 if self._calibration is None else float(np.log(1.0 / _OFTEN - 1.0))
        grid = np.geomspace(1e-4, 2.0, 2000)
        return float(grid[self.log_ratios(grid) >= least].max(initial=0.0))

    def _estimate_prior(self, rows: Rows, columns: Rows, distances: Floats32) -> None:
        """Find the share of pairs that show one person, by expectation maximisation.

        Pairs that are no neighbours are taken as two people. The rule of uncalibrated models has
        its own threshold and no prior.
        """
        if self._calibration is None:
            return
        m = len(self.units.means)
        ratios = self.pairs(distances, rows, columns)
        share = 1.0 / m
        for _ in range(_ROUNDS):
            odds = np.log(share) - np.log1p(-share)
            found = float((1.0 / (1.0 + np.exp(-(ratios + odds)))).sum()) / (m * (m - 1))
            share = min(max(found, 1.0 / m**2), _OFTEN)
        self.prior = float(np.log(share) - np.log1p(-share))


def _nearest(row: Rows, column: Rows, values: Floats32) -> tuple[Rows, Rows, Floats32]:
    """Keep the nearest columns of each row; rows are in order."""
    if len(row) and np.bincount(row).max() > _NEIGHBOURS:
        order = np.lexsort((values, row))
        row, column, values = row[order], column[order], values[order]
        kept = np.arange(len(row)) - np.searchsorted(row, row) < _NEIGHBOURS
        row, column, values = row[kept], column[kept], values[kept]
    return row, column, values


def clusters(
    evidence: Evidence, apart: Pairs, on_step: Callable[[float], None]
) -> list[tuple[Rows, float]]:
    """Cluster units; return those of at least two with how sure each is, surest first.

    `apart` are pairs said to be different people. How sure a cluster is is the mean probability of
    the pairs of the unit that fits least.
    """
    if len(evidence.units.means) < 2:
        return []
    rows, columns, odds = evidence.neighbours(on_step)
    found = []
    for part in _parts(len(evidence.units.means), rows, columns, odds):
        found += _clusters_of(evidence, part, apart)
    return sorted(found, key=lambda one: (-one[1], -len(one[0]), int(one[0][0])))


def _parts(m: int, rows: Rows, columns: Rows, odds: Floats, least: float = 0.0) -> Iterator[Rows]:
    """Yield the connected parts of the graph of evidence; too large ones need more of it."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    kept = odds > least
    graph = coo_matrix((np.ones(int(kept.sum())), (rows[kept], columns[kept])), (m, m))
    _, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(part) > _LARGE and least < _MOST - 1.0:
            inside = kept & (labels[rows] == labels[part[0]])
            yield from _parts(m, rows[inside], columns[inside], odds[inside], least + 1.0)
        elif len(part) > 1:
            yield part[:_LARGE]


def _clusters_of(evidence: Evidence, part: Rows, apart: Pairs) -> list[tuple[Rows, float]]:
    n = len(part)
    grid = np.repeat(part, n).reshape(n, n)
    odds = evidence.pairs(evidence.units.distances(part, part), grid, grid.T)
    place = {int(unit): i for i, unit in enumerate(part)}
    labels = cluster(odds, [(place[a], place[b]) for a, b in apart if a in place and b in place])
    chances = 1.0 / (1.0 + np.exp(-odds))
    np.fill_diagonal(chances, 0.0)
    found = []
    for label in range(int(labels.max()) + 1):
        own = np.flatnonzero(labels == label)
        if len(own) > 1:
            fits = chances[np.ix_(own, own)].sum(axis=1) / (len(own) - 1)
            found.append((part[own], float(fits.min())))
    return found


def cluster(odds: Floats, apart: Pairs = ()) -> Rows:
    """Join rows while the mean log-odds (n, n) that they are one person are positive.

    A chain of likenesses does not join strangers at its ends, nor is anybody joined with whom they
    were said to differ from. Returns numbers from 0 on, (n,).
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(odds) < 2:
        return np.zeros(len(odds), np.intp)
    costs = _MOST - np.minimum(odds, _MOST)
    for a, b in apart:
        costs[a, b] = costs[b, a] = _NEVER
    np.fill_diagonal(costs, 0.0)
    tree = linkage(squareform(costs, checks=False), "average")
    return np.asarray(fcluster(tree, _MOST, "distance") - 1, np.intp)


def join_close(close: NDArray[np.bool_]) -> Rows:
    """Join each row to the group of which it is close to half or more; named by its first row.

    Of several groups it is the one with most of these, so that a chain of likenesses does not join
    strangers at its ends. `close` (m, n, n) are m cases, each by itself; returns groups (m, n).
    """
    m, n = close.shape[:2]
    groups, sizes = np.tile(np.arange(n), (m, 1)), np.ones((m, n), np.intp)
    before, cases = np.tril(close, -1), np.arange(m)
    for row in np.flatnonzero(before.any(axis=(0, 2))).tolist():
        linked = (groups + n * cases[:, None])[before[:, row]]
        links = np.bincount(linked, minlength=m * n).reshape(m, n)
        links[2 * links < sizes] = 0
        best = links.argmax(axis=1)
        joins = np.flatnonzero(links[cases, best])
        groups[joins, row] = best[joins]
        sizes[joins, best[joins]] += 1
    return groups
