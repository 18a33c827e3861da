"""Every cross-camera pair exactly once, as a few dense blocks instead of a list of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.learners._base import Codes, Floats, squared_euclidean
from resight.learners._laplacian import CrossCameraPairs


@dataclass(frozen=True)
class PairBlock:
    """All pairs between two sets of rows of the data matrix."""

    first: Codes  # (n_first,)
    second: Codes  # (n_second,)
    similar: NDArray[np.bool_]  # (n_first, n_second): whether both show the same person
    # How often a pair counts: 1, or 1/2 and 0 on the diagonal where both sets are all rows.
    times: Floats  # (n_first, n_second)

    @property
    def n_pairs(self) -> float:
        """Number of pairs, each counted once."""
        return float(self.times.sum())

    def distances(self, E: Floats) -> Floats:
        """Squared Euclidean distances of the pairs for embeddings E, (n_first, n_second)."""
        return squared_euclidean(E[self.first], E[self.second])

    def distinct(self, Z: Floats, fraction: float) -> NDArray[np.bool_]:
        """Whether the rows of a pair differ: by more than ``fraction`` of the spread of Z."""
        spread = 2.0 * Z.var(axis=0).sum()  # mean squared distance of two rows
        return (self.distances(Z) > fraction * spread) & (self.times != 0.0)

    def add_laplacian(self, weights: Floats, E: Floats, out: Floats) -> None:
        """Add L E to ``out``, L the Laplacian of the pairs with these weights.

        The sum over pairs of w_ij (x_i - x_j)(x_i - x_j)^T is then X^T L X.
        """
        E_first, E_second = E[self.first], E[self.second]
        toward_second = weights.sum(axis=1)[:, None] * E_first - weights @ E_second
        toward_first = weights.sum(axis=0)[:, None] * E_second - weights.T @ E_first
        out[self.first] += toward_second
        out[self.second] += toward_first


def pair_blocks(persons: Codes, cameras: Codes | None) -> list[PairBlock]:
    """Blocks that hold each cross-camera pair once: a camera against all earlier cameras.

    Without cameras all pairs count; they are one block of all rows against all rows in which each
    pair appears twice, half each time. Data without a similar or dissimilar pair are refused.
    """
    CrossCameraPairs(persons, cameras)  # its checks
    if cameras is None:
        rows = np.arange(len(persons))
        halves = np.full((len(rows), len(rows)), 0.5)
        np.fill_diagonal(halves, 0.0)
        return [PairBlock(rows, rows, persons[:, None] == persons, halves)]
    blocks = []
    for camera in range(1, int(cameras.max()) + 1):
        first, second = np.flatnonzero(cameras < camera), np.flatnonzero(cameras == camera)
        similar = persons[first][:, None] == persons[second]
        blocks.append(PairBlock(first, second, similar, np.ones(similar.shape)))
    return blocks


def laplacian_times(blocks: Sequence[PairBlock], weights: Sequence[Floats], E: Floats) -> Floats:
    """Return L E for the Laplacian L of all blocks with their weights, (N, n_columns)."""
    product = np.zeros_like(E)
    for block, weight in zip(blocks, weights, strict=True):
        block.add_laplacian(weight, E, out=product)
    return product


def mean_distance(blocks: Sequence[PairBlock], Z: Floats) -> float:
    """Mean squared distance of the cross-camera pairs."""
    total = sum(float((block.times * block.distances(Z)).sum()) for block in blocks)
    return total / sum(block.n_pairs for block in blocks)
