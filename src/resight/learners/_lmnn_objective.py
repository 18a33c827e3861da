"""The objective of LMNN and its gradient, whole rows of impostors at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from resight.learners._base import Codes, Floats, squared_euclidean

#: Distances held at once; more sightings are worked on in slices of rows.
BLOCK_ENTRIES = 1 << 22

#: A sighting with fewer target neighbours than others has this in their place.
MISSING = -1


def target_neighbors(Z: Floats, persons: Codes, cameras: Codes | None, k: int) -> Codes:
    """Nearest sightings of the same person in other cameras, (N, <= k), MISSING where fewer.

    Equal distances are ordered by row.
    """
    nearest = np.full((len(Z), k), MISSING, dtype=np.intp)
    order = np.argsort(persons, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(persons[order])) + 1):
        D2 = squared_euclidean(Z[members], Z[members])  # (n_c, n_c)
        D2[~_other_camera(members, members, cameras)] = np.inf
        ranked = np.argsort(D2, axis=1, kind="stable")[:, :k]
        found = np.isfinite(np.take_along_axis(D2, ranked, axis=1))
        nearest[members, : ranked.shape[1]] = np.where(found, members[ranked], MISSING)
    used = (nearest != MISSING).any(axis=0)
    return nearest[:, used]


class LMNNObjective:
    """Pull and push of LMNN for embeddings Z L^T.

    f(L) = 1/n [ (1 - push) sum d_ij + push sum h(1 + d_ij - d_il) ] over the n target pairs (i, j)
    and the impostors l of i: sightings of other persons in other cameras. h is the hinge with its
    corner rounded: z^2 / (2 s) up to z = s, and z - s/2 beyond.

    Parameters
    ----------
    Z : ndarray of shape (N, d)
        Features.
    persons, cameras : int arrays (N,); cameras may be None
        Who and where.
    targets : int array (N, k)
        Rows of the target neighbours of each sighting, MISSING for none.
    push, smoothing : float
        Weight of the push, and s.
    """

    def __init__(
        self,
        Z: Floats,
        persons: Codes,
        cameras: Codes | None,
        targets: Codes,
        *,
        push: float,
        smoothing: float,
    ) -> None:
        self.Z, self.persons, self.cameras, self.targets = Z, persons, cameras, targets
        self.push, self.smoothing = push, smoothing
        self.n_pairs = int(np.count_nonzero(targets != MISSING))

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """Return f(L) and its gradient, for L of shape (r, d)."""
        E = self.Z @ L.T  # (N, r)
        slope = np.zeros_like(E)  # half the derivative by E
        value = sum(self._add_rows(rows, E, slope) for rows in self._slices())
        gradient: Floats = (2.0 / self.n_pairs) * (slope.T @ self.Z)  # (r, d)
        return value / self.n_pairs, gradient

    def _slices(self) -> Iterator[Codes]:
        anchors = np.flatnonzero((self.targets != MISSING).any(axis=1))
        size = max(1, BLOCK_ENTRIES // len(self.Z))
        return (anchors[start : start + size] for start in range(0, len(anchors), size))

    def _add_rows(self, rows: Codes, E: Floats, slope: Floats) -> float:
        """Add the terms of the anchors ``rows`` to slope; return their value."""
        D2 = squared_euclidean(E[rows], E)  # (n_rows, N)
        D2[~self._impostors(rows)] = np.inf
        pressed = np.zeros_like(D2)  # how strongly each impostor is pushed away
        value = 0.0
        for targets in self.targets[rows].T:  # the first target of every anchor, the second, ...
            has = targets != MISSING
            toward = np.where(has[:, None], E[rows] - E[targets], 0.0)
            pull = (toward * toward).sum(axis=1)
            reach = np.where(has, 1.0 + pull, -np.inf)
            loss, derivative = self._hinge(reach[:, None] - D2)
            value += (1.0 - self.push) * pull.sum() + self.push * loss.sum()
            weight = (1.0 - self.push) + self.push * derivative.sum(axis=1)
            toward *= weight[:, None]
            slope[rows] += toward
            np.subtract.at(slope, targets[has], toward[has])
            pressed += derivative
        slope[rows] -= self.push * (pressed.sum(axis=1)[:, None] * E[rows] - pressed @ E)
        slope -= self.push * (pressed.sum(axis=0)[:, None] * E - pressed.T @ E[rows])
        return float(value)

    def _hinge(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the rounded hinge and its derivative."""
        positive = np.maximum(z, 0.0)
        derivative = np.minimum(positive / self.smoothing, 1.0)
        return derivative * (positive - 0.5 * self.smoothing * derivative), derivative

    def _impostors(self, rows: Codes) -> NDArray[np.bool_]:
        different = self.persons[rows][:, None] != self.persons
        return different & _other_camera(rows, np.arange(len(self.Z)), self.cameras)


def _other_camera(rows: Codes, columns: Codes, cameras: Codes | None) -> NDArray[np.bool_]:
    views = np.arange(max(rows.max(), columns.max()) + 1) if cameras is None else cameras
    return np.asarray(views[rows][:, None] != views[columns])
