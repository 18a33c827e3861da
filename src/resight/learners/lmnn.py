"""Large margin nearest neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from resight.learners._base import Codes, Floats, squared_euclidean
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._parameters import Components, Count, Positive, PositiveShare
from resight.learners._subspace import DescendingLearner

#: Distances held at once; more sightings are worked on in slices of rows.
BLOCK_ENTRIES = 1 << 22

#: A sighting with fewer target neighbours than others has this in their place.
MISSING = -1


class LMNN(DescendingLearner):
    """Pull the nearest sightings of the same person close, push impostors a margin further away.

    It uses ``cameras``: target neighbours and impostors are sightings of other cameras, which are
    those that a search across cameras ranks.

    Parameters
    ----------
    n_neighbors : int, default=1
        Target neighbours of a sighting: its nearest sightings of the same person in other
        cameras, by Euclidean distance; fewer where the person has fewer.
    push : float, default=0.5
        Weight of the push, above 0 and at most 1; the pull has the rest.
    pca : int, "auto" or "full", default="auto"
        Principal components of the training rows to work on; "auto" is up to 100, "full" all.
    smoothing : float, default=0.1
        Width of the rounded corner of the hinge, in units of the margin.
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-3
        It stops when no entry of the gradient exceeds this.

    Attributes
    ----------
    mean_, components_
        As in `LFDA`.
    objective_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration; it never increases.
    gradient_norm_ : float
        Largest entry of the gradient at the end.
    n_iter_ : int
    converged_ : bool
        Whether the stopping criterion was met; if not, the fit warns.

    Notes
    -----
    Over the n target pairs (i, j) and the impostors l of i, it minimises

        f(L) = 1/n [ (1 - push) sum d_ij + push sum max(0, 1 + d_ij - d_il) ],
        d_ij = |L x_i - L x_j|^2.

    The features are first divided by one number that makes the mean squared distance of target
    pairs 1, so the result does not depend on their scale. All impostors of all anchors are
    evaluated in every step (matrix products, no list of triplets), and L-BFGS with a line search
    takes the place of the published fixed-step gradient with its impostor set refreshed every
    15 steps.

    The hinge has a corner in which a minimum may lie without the gradient being 0 there. It is
    therefore rounded over ``smoothing``, which lowers a term by at most smoothing / 2.

    The metric is free in all dimensions: with fewer target pairs than principal components the
    pull can be driven to 0 by dropping the directions in which they differ, which does not carry
    over to new persons. A smaller ``pca`` helps.

    References
    ----------
    K. Q. Weinberger, L. K. Saul, "Distance metric learning for large margin nearest neighbor
    classification", JMLR 10, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from resight import LMNN
    >>> X = np.array([[0.0, 0], [1, 1], [2, 0], [0, 5], [1, 6], [2, 5]])
    >>> learner = LMNN().fit(X, [1, 2, 3, 1, 2, 3], cameras=[0, 0, 0, 1, 1, 1])
    >>> bool(learner.objective_[-1] < learner.objective_[0])
    True
    """

    state_version = 1

    n_neighbors: Count = 1
    push: PositiveShare = 0.5
    pca: Components = "auto"
    smoothing: Positive = 0.1
    max_iter: Count = 1000
    tol: Positive = 1e-3

    def _fit_reduced(self, Z: Floats, persons: Codes, cameras: Codes | None) -> Floats:
        CrossCameraPairs(persons, cameras)  # refuses data without target or impostor
        targets = target_neighbors(Z, persons, cameras, self.n_neighbors)
        factor = 1.0 / _typical_distance(Z, targets)
        objective = LMNNObjective(
            factor * Z, persons, cameras, targets, push=self.push, smoothing=self.smoothing
        )
        return factor * self._descend(objective, Z.shape[1]).T  # (p, p)


def _typical_distance(Z: Floats, targets: Codes) -> float:
    """Root mean squared distance of target pairs; that of any two rows where those coincide."""
    anchors, ranks = np.nonzero(targets != MISSING)
    apart = Z[anchors] - Z[targets[anchors, ranks]]
    squared = float((apart * apart).sum() / len(anchors))
    spread = 2.0 * float((Z * Z).sum() / len(Z))  # Z is centred
    return float(np.sqrt(squared if squared > 1e-12 * spread else spread))


def target_neighbors(Z: Floats, persons: Codes, cameras: Codes | None, k: int) -> Codes:
    """Nearest sightings of the same person in other cameras, (N, <= k), MISSING where fewer."""
    nearest = np.full((len(Z), k), MISSING, dtype=np.intp)
    order = np.argsort(persons, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(persons[order])) + 1):
        D2 = squared_euclidean(Z[members], Z[members])  # (n_c, n_c)
        views = members if cameras is None else cameras[members]
        D2[views[:, None] == views] = np.inf
        ranked = np.argsort(D2, axis=1, kind="stable")[:, :k]
        found = np.isfinite(np.take_along_axis(D2, ranked, axis=1))
        nearest[members, : ranked.shape[1]] = np.where(found, members[ranked], MISSING)
    return nearest[:, (nearest != MISSING).any(axis=0)]


@dataclass(eq=False)
class LMNNObjective:
    """The f(L) of `LMNN` for embeddings Z L^T, its hinge with a rounded corner.

    That is z^2 / (2 s) up to z = s, the `smoothing`, and z - s/2 beyond.
    """

    Z: Floats  # (N, d)
    persons: Codes  # (N,)
    cameras: Codes | None  # (N,)
    targets: Codes  # (N, k): rows of the target neighbours, MISSING for none
    push: float
    smoothing: float

    def __post_init__(self) -> None:
        self.n_pairs = int(np.count_nonzero(self.targets != MISSING))
        self._slices = list(_anchor_slices(self.persons, self.cameras, self.targets))

    def __call__(self, L: Floats) -> tuple[float, Floats]:
        """Return f(L) and its gradient, for L of shape (r, d)."""
        E = self.Z @ L.T  # (N, r)
        slope = np.zeros_like(E)  # half the derivative by E
        value = sum(self._add_terms(*anchors, E, slope) for anchors in self._slices)
        return value / self.n_pairs, (2.0 / self.n_pairs) * (slope.T @ self.Z)

    def _add_terms(
        self, rows: Codes, others: Codes, same: tuple[Codes, ...], E: Floats, slope: Floats
    ) -> float:
        """Add the terms of these anchors to slope; return their value."""
        mine, theirs = E[rows], E[others]
        D2 = squared_euclidean(mine, theirs)  # (a, b)
        D2[same] = np.inf
        pressed = np.zeros_like(D2)  # how strongly each impostor is pushed away
        value = 0.0
        for targets in self.targets[rows].T:  # everybody's nearest, then the next, ...
            has = targets != MISSING
            toward = np.where(has[:, None], mine - E[targets], 0.0)
            pull = (toward * toward).sum(axis=1)
            loss, press = self._hinge(np.where(has, 1.0 + pull, -np.inf)[:, None] - D2)
            value += (1.0 - self.push) * pull.sum() + self.push * loss
            toward *= (1.0 - self.push) + self.push * press.sum(axis=1)[:, None]
            slope[rows] += toward
            np.subtract.at(slope, targets[has], toward[has])
            pressed += press
        out, back = pressed.sum(axis=1)[:, None], pressed.sum(axis=0)[:, None]
        slope[rows] -= self.push * (out * mine - pressed @ theirs)
        slope[others] -= self.push * (back * theirs - pressed.T @ mine)
        return float(value)

    def _hinge(self, z: Floats) -> tuple[float, Floats]:
        """Return the sum of the rounded hinge and its derivative; z is overwritten."""
        np.maximum(z, 0.0, out=z)
        derivative = z / self.smoothing
        np.minimum(derivative, 1.0, out=derivative)
        squares = np.vdot(derivative, derivative)
        return float(np.vdot(derivative, z) - 0.5 * self.smoothing * squares), derivative


def _anchor_slices(
    persons: Codes, cameras: Codes | None, targets: Codes
) -> Iterator[tuple[Codes, Codes, tuple[Codes, ...]]]:
    """Yield anchors of one camera, all sightings of the others, and where both show one person."""
    has_target = (targets != MISSING).any(axis=1)
    everybody = np.zeros(len(persons), dtype=np.intp) if cameras is None else cameras
    for camera in np.unique(everybody):
        rows = np.flatnonzero((everybody == camera) & has_target)
        # Without cameras nobody is excluded here: a sighting is no impostor of its own person.
        others = np.flatnonzero((everybody != camera) | (cameras is None))
        size = max(1, BLOCK_ENTRIES // len(others))
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            yield some, others, np.nonzero(persons[some][:, None] == persons[others])
