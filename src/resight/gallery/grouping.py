"""Clustering sightings into people by pair evidence.

The evidence of two units (tracks, or sightings without one) is the log-odds that they show one
person: log r of the model's calibration, distances to what is near to everybody lengthened as in a
search, mean of both directions, plus the prior log-odds of a pair, before one camera and before
two, which are estimated from the sightings themselves. Clusters are joined as long as the mean
evidence between them is positive (average linkage), and never where somebody said "different". Then
each cluster competes, by Bayes' rule, with whoever else is near: units that are not likelier than
not to belong to it are taken out. Only nearest neighbours are looked at to find parts of the
gallery that can be clustered by themselves, so that nothing grows with the square of its size but
blocked matrix products.

Without calibration a rule stands in for log r: relative distances below `CLOSE` count as evidence,
and nobody competes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.evaluation.presence import evened, logistic, nearness
from resight.gallery.engines.base import Floats32

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

CLOSE = 0.25  # share of the median distance below which an uncalibrated pair is joined
LEAST_SURE = 0.5  # of a unit, that it belongs to the group in which it is proposed
_STEEP = 8.0  # how quickly evidence of that rule falls with log z
_SAMPLE = 200  # units of a camera that its median distance is taken over
_OTHERS, _FEW = (
    1000,
    16,
)  # units of other cameras that tell who is near to everybody; too few do not
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
        return cls(
            np.asarray(means, np.float32),
            np.maximum(spreads, 0.0).astype(np.float32),
            cameras[order][starts],
        )

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
        self.units, self.calibration = units, calibration
        self.priors = np.zeros(2)  # of a pair before two cameras, and before one, as log-odds
        cameras = range(int(units.cameras.max()) + 1)
        self._longer = np.ones(len(units.means), np.float32)
        for camera in cameras if calibration is not None else ():
            self._lengthen(units.cameras == camera)
        self.scales = np.stack([self._medians(camera) for camera in cameras], axis=1)
        self.rivals = np.zeros(self.scales.shape)  # sums of r over a camera's neighbours of a unit

    def _lengthen(self, own: NDArray[np.bool_]) -> None:
        """Find by how much distances to a camera's units are multiplied; see `evened`."""
        asked = _some(np.flatnonzero(~own), _OTHERS)
        if len(asked) < _FEW:
            return
        rows = np.flatnonzero(own)
        step = max(1, _CELLS // len(asked))
        parts = np.split(rows, range(step, len(rows), step))
        near = [nearness(np.log(self.units.distances(asked, part))) for part in parts]
        self._longer[rows] = evened(np.ones(len(rows)), np.concatenate(near))

    def _medians(self, camera: int) -> Floats32:
        """Return the median distance of each unit to the units of a camera, or of all."""
        own = np.flatnonzero(self.units.cameras == camera)
        sample = _some(own if len(own) >= 10 else np.arange(len(self.units.cameras)), _SAMPLE)
        step = max(1, _CELLS // len(sample))
        everything = range(0, len(self.units.means), step)
        parts = [self.units.distances(slice(i, i + step), sample) for i in everything]
        return np.concatenate([np.median(part * self._longer[sample], axis=1) for part in parts])

    def log_ratios(self, z: Floats) -> Floats:
        """Return log r(z), or what stands in for it."""
        if self.calibration is not None:
            return np.asarray(self.calibration.log_ratios(z), float)
        return np.asarray(_STEEP * (np.log(CLOSE) - np.log(z)))

    def ratios(self, distances: Any, rows: Rows, columns: Rows) -> Floats:
        """Return log r of columns for rows by their distances; arrays of one shape."""
        z = distances * self._longer[columns] / self.scales[rows, self.units.cameras[columns]]
        return np.minimum(self.log_ratios(z), _MOST)

    def pairs(self, distances: Any, rows: Rows, columns: Rows) -> Floats:
        """Return the log-odds of pairs by their distances, were there nobody else."""
        both = self.ratios(distances, rows, columns) + self.ratios(distances, columns, rows)
        return np.minimum(0.5 * both + self._prior(rows, columns), _MOST)

    def _prior(self, rows: Rows, columns: Rows) -> Floats:
        cameras = self.units.cameras
        return self.priors[(cameras[rows] == cameras[columns]).astype(int)]

    def against_rivals(self, part: Rows, ratios: Floats, labels: Rows) -> Floats:
        """Return the log-odds of pairs of a part (n, n), each against whoever else is near.

        `ratios` are log r. Units of one cluster, by its label, do not compete with each other. The
        weaker direction counts.
        """
        np.fill_diagonal(ratios, -np.inf)
        weights, odds = np.exp(ratios), np.empty_like(ratios)
        for camera in np.unique(self.units.cameras[part]):
            own = np.flatnonzero(self.units.cameras[part] == camera)
            together = labels[own][:, None] == labels[own]
            rivals = self.rivals[part, camera][:, None] - weights[:, own] @ together.astype(float)
            prior = self._prior(part[:, None], part[own])
            odds[:, own] = ratios[:, own] - np.log(np.exp(-prior) + np.maximum(rivals, 0.0))
        return np.minimum(odds, odds.T)

    def neighbours(self, on_step: Callable[[float], None]) -> tuple[Rows, Rows, Floats]:
        """Return rows, columns and log-odds of all pairs that may show one person.

        These are the pairs that are near enough in one of the two directions, of a unit the
        nearest ones.
        """
        m, limit = len(self.units.means), self._limit()
        order = np.argsort(self.units.cameras, kind="stable")
        ends = np.searchsorted(self.units.cameras[order], np.arange(self.scales.shape[1] + 1))
        columns = Units(
            self.units.means[order], self.units.spreads[order], self.units.cameras[order]
        )
        places = np.argsort(order)
        found: list[tuple[Rows, Rows, Floats32]] = []
        step = max(1, _CELLS // m)
        for start in range(0, m, step):
            block = np.arange(start, min(start + step, m))
            d = columns.distances(places[block], slice(None))  # (block, m), cameras side by side
            longer = d * self._longer[order]
            near = np.empty(d.shape, bool)
            for camera, (first, last) in enumerate(pairwise(ends.tolist())):
                scale = limit * self.scales[block, camera]
                np.less(longer[:, first:last], scale[:, None], out=near[:, first:last])
            row, column = np.nonzero(near)
            row, column, values = _nearest(row, column, d[row, column])
            found.append((block[row], order[column], values))
            on_step((start + len(block)) / m)
        rows, others, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        two = rows != others
        rows, others, distances = rows[two], others[two], distances[two]
        if self.calibration is not None:  # the rule of other models has its own threshold
            cells = np.ravel_multi_index((rows, self.units.cameras[others]), self.rivals.shape)
            weights = np.exp(self.ratios(distances, rows, others))
            sums = np.bincount(cells, weights, minlength=self.rivals.size)
            self.rivals = np.asarray(sums, float).reshape(self.rivals.shape)
            self._estimate_priors(rows, others, distances)
        return rows, others, self.pairs(distances, rows, others)

    def _limit(self) -> float:
        """Return the relative distance beyond which no prior makes a pair one person."""
        least = 0.0 if self.calibration is None else float(np.log(1.0 / _OFTEN - 1.0))
        grid = np.geomspace(1e-4, 2.0, 2000)
        enough = grid[self.log_ratios(grid) >= least]
        return float(enough.max(initial=0.0))

    def _estimate_priors(self, rows: Rows, columns: Rows, distances: Floats32) -> None:
        """Find the shares of pairs that show one person, by expectation maximisation.

        Pairs that are no neighbours are taken as two people.
        """
        m, counts = len(self.units.means), np.bincount(self.units.cameras)
        ratios = self.pairs(distances, rows, columns)
        one_camera = self.units.cameras[rows] == self.units.cameras[columns]
        of_one = float((counts * (counts - 1)).sum())
        for place, n_pairs in enumerate((m * (m - 1) - of_one, of_one)):
            some, share = ratios[one_camera == place], 1.0 / m
            for _ in range(_ROUNDS):
                found = logistic(some + np.log(share) - np.log1p(-share)).sum() / max(n_pairs, 1.0)
                share = min(max(float(found), 1.0 / m**2), _OFTEN)
            self.priors[place] = np.log(share) - np.log1p(-share)


def _some(rows: Rows, most: int) -> Rows:
    return rows[:: max(1, len(rows) // most)][:most]


def _nearest(row: Rows, column: Rows, values: Floats32) -> tuple[Rows, Rows, Floats32]:
    """Keep the nearest columns of each row; rows are in order."""
    if len(row) and np.bincount(row).max() > _NEIGHBOURS:
        order = np.lexsort((values, row))
        row, column, values = row[order], column[order], values[order]
        kept = np.arange(len(row)) - np.searchsorted(row, row) < _NEIGHBOURS
        row, column, values = row[kept], column[kept], values[kept]
    return row, column, values


def clusters(
    evidence: Evidence, apart: Sequence[tuple[int, int]], on_step: Callable[[float], None]
) -> list[tuple[Rows, float]]:
    """Cluster units; return those of at least two with how sure each is, surest first.

    `apart` are pairs said to be different people. How sure a cluster is is the mean probability of
    the pairs of the unit that fits least; units that fit less than `LEAST_SURE` are left out.
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
            yield from (
                one
                for one in _parts(m, rows[inside], columns[inside], odds[inside], least + 1.0)
                if len(one) > 1
            )
        elif len(part) > 1:
            yield part[:_LARGE]


def _clusters_of(
    evidence: Evidence, part: Rows, apart: Sequence[tuple[int, int]]
) -> list[tuple[Rows, float]]:
    n = len(part)
    grid = np.repeat(part, n).reshape(n, n)
    distances = evidence.units.distances(part, part)
    odds = evidence.pairs(distances, grid, grid.T)
    place = {int(unit): i for i, unit in enumerate(part)}
    labels = cluster(odds, [(place[a], place[b]) for a, b in apart if a in place and b in place])
    if evidence.calibration is not None:
        odds = evidence.against_rivals(part, evidence.ratios(distances, grid, grid.T), labels)
    chances = logistic(odds)
    np.fill_diagonal(chances, 0.0)
    found = []
    for label in range(int(labels.max()) + 1):
        own = np.flatnonzero(labels == label)
        while len(own) > 1:
            fits = chances[np.ix_(own, own)].sum(axis=1) / (len(own) - 1)
            if evidence.calibration is None or fits.min() >= LEAST_SURE:
                found.append((part[own], float(fits.min())))
                break
            own = np.delete(own, fits.argmin())
    return found


def cluster(odds: Floats, apart: Sequence[tuple[int, int]] = ()) -> Rows:
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
    """Join each row to the group of which it is close to half or more; numbers from 0 on.

    Of several groups it is the one with most of these, so that a chain of likenesses does not join
    strangers at its ends.
    """
    before: list[list[int]] = [[] for _ in close]  # earlier rows that each is close to
    for row, other in np.argwhere(np.tril(close, -1)).tolist():
        before[row].append(other)
    codes: list[int] = []
    sizes: list[int] = []
    for others in before:  # a search does this hundreds of times: arrays so small are slow
        links: dict[int, int] = {}
        for other in others:
            links[codes[other]] = links.get(codes[other], 0) + 1
        fit = [(-n, group) for group, n in links.items() if 2 * n >= sizes[group]]
        codes.append(min(fit)[1] if fit else len(sizes))
        if not fit:
            sizes.append(0)
        sizes[codes[-1]] += 1
    return np.array(codes, np.intp)
