"""The objective of LMNN and its gradient, whole rows of impostors at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
        D2[~_other_camera(members, cameras)] = np.inf
        ranked = np.argsort(D2, axis=1, kind="stable")[:, :k]
        found = np.isfinite(np.take_along_axis(D2, ranked, axis=1))
        nearest[members, : ranked.shape[1]] = np.where(found, members[ranked], MISSING)
    used = (nearest != MISSING).any(axis=0)
    return nearest[:, used]


@dataclass(frozen=True)
class _Anchors:
    """Some sightings of one camera and those of all other cameras."""

    rows: Codes  # (a,)
    others: Codes  # (b,)
    same: tuple[Codes, ...]  # where in (a, b) both show one person: no impostor there


class LMNNObjective:
    """Pull and push of LMNN for embeddings Z L^T.

    f(L) = 1/n [ (1 - push) sum d_ij + push sum h(1 + d_ij - d_il) ] over the n target pairs (i, j)
    and the impostors l of i: sightings of other persons in other cameras. h is the hinge with its
    corner rounded: z^2 / (2 s) up to z = s, the `smoothing`, and z - s/2 beyond. `targets` (N, k)
    are rows of the target neighbours of each sighting of Z (N, d), MISSING for none.
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
        self.Z, self.targets = Z, targets
        self.push, self.smoothing = push, smoothing
        self.n_pairs = int(np.count_nonzero(targets != MISSING))
        self._slices = list(_anchor_slices(persons, cameras, targets))

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """Return f(L) and its gradient, for L of shape (r, d)."""
        E = self.Z @ L.T  # (N, r)
        slope = np.zeros_like(E)  # half the derivative by E
        value = sum(self._add_terms(anchors, E, slope) for anchors in self._slices)
        gradient: Floats = (2.0 / self.n_pairs) * (slope.T @ self.Z)  # (r, d)
        return value / self.n_pairs, gradient

    def _add_terms(self, anchors: _Anchors, E: Floats, slope: Floats) -> float:
        """Add the terms of these anchors to slope; return their value."""
        mine, theirs = E[anchors.rows], E[anchors.others]
        D2 = squared_euclidean(mine, theirs)  # (a, b)
        D2[anchors.same] = np.inf
        pressed = np.zeros_like(D2)  # how strongly each impostor is pushed away
        value = 0.0
        for targets in self.targets[anchors.rows].T:  # everybody's nearest, then the next, ...
            has = targets != MISSING
            toward = np.where(has[:, None], mine - E[targets], 0.0)
            pull = (toward * toward).sum(axis=1)
            reach = np.where(has, 1.0 + pull, -np.inf)
            loss, press = self._hinge(reach[:, None] - D2)
            value += (1.0 - self.push) * pull.sum() + self.push * loss
            toward *= (1.0 - self.push) + self.push * press.sum(axis=1)[:, None]
            slope[anchors.rows] += toward
            np.subtract.at(slope, targets[has], toward[has])
            pressed += press
        out, back = pressed.sum(axis=1)[:, None], pressed.sum(axis=0)[:, None]
        slope[anchors.rows] -= self.push * (out * mine - pressed @ theirs)
        slope[anchors.others] -= self.push * (back * theirs - pressed.T @ mine)
        return float(value)

    def _hinge(self, z: Floats) -> tuple[float, Floats]:
        """Return the sum of the rounded hinge and its derivative; z is overwritten."""
        np.maximum(z, 0.0, out=z)
        derivative = z / self.smoothing
        np.minimum(derivative, 1.0, out=derivative)
        squares = np.vdot(derivative, derivative)
        return float(np.vdot(derivative, z) - 0.5 * self.smoothing * squares), derivative


def _anchor_slices(persons: Codes, cameras: Codes | None, targets: Codes) -> Iterator[_Anchors]:
    """Split the sightings that have a target by camera, and into slices that fit into memory."""
    has_target = (targets != MISSING).any(axis=1)
    everybody = np.zeros(len(persons), dtype=np.intp) if cameras is None else cameras
    for camera in np.unique(everybody):
        rows = np.flatnonzero((everybody == camera) & has_target)
        # Without cameras nobody is excluded here: a sighting is no impostor of its own person.
        others = np.flatnonzero((everybody != camera) | (cameras is None))
        size = max(1, BLOCK_ENTRIES // len(others))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            same = np.nonzero(persons[some][:, None] == persons[others])
            yield _Anchors(some, others, same)


def _other_camera(members: Codes, cameras: Codes | None) -> NDArray[np.bool_]:
    views = members if cameras is None else cameras[members]
    return np.asarray(views[:, None] != views)
