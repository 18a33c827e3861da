"""Every cross-camera pair exactly once, in one vector made of a few dense blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from resight.learners._base import Codes, Floats, squared_euclidean
from resight.learners._laplacian import CrossCameraPairs


class AllPairs:
    """All cross-camera pairs: each camera against all earlier cameras.

    Without cameras all pairs count; they are one block of all rows against all rows in which each
    pair appears twice, half each time. Data without a similar or dissimilar pair are refused.
    """

    def __init__(self, persons: Codes, cameras: Codes | None) -> None:
        CrossCameraPairs(persons, cameras)  # its checks
        rows = np.arange(len(persons))
        self.blocks = [(rows, rows)]  # rows of the data matrix on either side
        if cameras is not None:
            later = range(1, int(cameras.max()) + 1)
            self.blocks = [(rows[cameras < one], rows[cameras == one]) for one in later]
        sizes = [len(first) * len(second) for first, second in self.blocks]
        self._slices = [slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]).tolist())]
        same = [persons[first][:, None] == persons[second] for first, second in self.blocks]
        self.similar = np.concatenate([block.ravel() for block in same])  # (n_pairs,)
        self.times = np.ones(len(self.similar))  # how often a pair counts
        if cameras is None:
            self.times = np.where(rows[:, None] == rows, 0.0, 0.5).ravel()

    def distances(self, E: Floats) -> Floats:
        """Squared Euclidean distances of the pairs for embeddings E, (n_pairs,)."""
        found = [squared_euclidean(E[first], E[second]).ravel() for first, second in self.blocks]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def mean_distance(self, Z: Floats) -> float:
        """Mean squared distance of the pairs."""
        return float((self.times * self.distances(Z)).sum() / self.times.sum())

    def laplacian_times(self, weights: Floats, E: Floats) -> Floats:
        """Return L E, L the Laplacian of the pairs with these weights (n_pairs,).

        The sum over pairs of w_ij (x_i - x_j)(x_i - x_j)^T is then X^T L X.
        """
        product = np.zeros_like(E)
        for (first, second), part in zip(self.blocks, self._slices, strict=True):
            W, left, right = weights[part].reshape(len(first), -1), E[first], E[second]
            product[first] += W.sum(axis=1)[:, None] * left - W @ right
            product[second] += W.sum(axis=0)[:, None] * right - W.T @ left
        return product
