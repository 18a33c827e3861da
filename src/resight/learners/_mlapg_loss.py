"""The loss of MLAPG over cross-camera pairs, and one proximal gradient step on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.special import expit

from resight.learners._base import Floats
from resight.learners._pair_blocks import PairBlock, laplacian_times, mean_distance

#: The line search multiplies its Lipschitz constant by this until the step is short enough.
LIPSCHITZ_GROWTH = 2.0


@dataclass(frozen=True)
class Metric:
    """A matrix M with what the iterations need to know about it."""

    M: Floats  # (d, d)
    root: Floats  # (d, r): M = root root^T
    distances: list[Floats]  # d_M of the pairs of each block
    value: float  # F(M)


class LogisticLoss:
    """F(M) = sum_ij w_ij log(1 + exp(y_ij (d_M(x_i, x_j) - mu))) over cross-camera pairs.

    y = 1 and w = 1/n_S for similar pairs, y = -1 and w = 1/n_D for the others; mu is the mean of
    the squared distances of the pairs of Z (N, d). `precision` is that of matrices; sums over
    pairs and over entries are float64 all the same.
    """

    def __init__(self, blocks: list[PairBlock], Z: Floats, precision: str = "float64") -> None:
        self.blocks = blocks
        self.mu = mean_distance(blocks, Z)
        self.Z: Floats = Z.astype(precision, copy=False)
        n_similar = sum(float((b.times * b.similar).sum()) for b in blocks)
        n_dissimilar = sum(float((b.times * ~b.similar).sum()) for b in blocks)
        self.signs = [np.where(b.similar, 1.0, -1.0) for b in blocks]
        self.weights = [
            b.times * np.where(b.similar, 1.0 / n_similar, 1.0 / n_dissimilar) for b in blocks
        ]

    def at(self, root: Floats) -> Metric:
        """Evaluate F at M = root root^T."""
        distances = [block.distances(self.Z @ root) for block in self.blocks]
        return Metric(root @ root.T, root, distances, self.value(distances))

    def value(self, distances: list[Floats]) -> float:
        """F from the distances of the pairs."""
        return sum(
            float((w * np.logaddexp(0.0, y * (d - self.mu))).sum())
            for w, y, d in zip(self.weights, self.signs, distances, strict=True)
        )

    def gradient(self, distances: list[Floats]) -> Floats:
        """Gradient of F with respect to M from the distances of the pairs, (d, d)."""
        slopes = [
            (w * y * expit(y * (d - self.mu))).astype(self.Z.dtype, copy=False)
            for w, y, d in zip(self.weights, self.signs, distances, strict=True)
        ]
        G: Floats = self.Z.T @ laplacian_times(self.blocks, slopes, self.Z)
        return G

    def accelerated_step(
        self, current: Metric, previous: Metric, pace: float, lipschitz: float
    ) -> tuple[Metric, float]:
        """Step from V = M + pace (M - M_previous); return the new metric and its constant.

        The step is M' = PSD part of V - grad F(V) / L. L grows until F(M') is below the quadratic
        bound F(V) + <grad F(V), M' - V> + L/2 |M' - V|^2.
        """
        V = current.M + pace * (current.M - previous.M)
        # Distances are linear in the matrix, so those of V need no product with the features.
        distances = [
            now + pace * (now - before)
            for now, before in zip(current.distances, previous.distances, strict=True)
        ]
        value, G = self.value(distances), self.gradient(distances)
        while True:
            step = self.at(psd_root(V - G / lipschitz, current.root.shape[1]))
            move = step.M - V
            bound = value + _inner(G, move) + lipschitz / 2.0 * _inner(move, move)
            if step.value <= bound:
                return step, lipschitz
            lipschitz *= LIPSCHITZ_GROWTH


def _inner(A: Floats, B: Floats) -> float:
    """Inner product of two matrices, summed in float64: the line search must not see noise."""
    return float(np.einsum("ij,ij->", A, B, dtype=np.float64))


def psd_root(S: Floats, expected_rank: int | None = None) -> Floats:
    """Return R of shape (d, r) with R R^T the positive semi-definite part of symmetric S.

    Where less than half of the eigenvalues are expected to be positive, only these are computed.
    """
    if expected_rank is not None and expected_rank < len(S) // 2:
        values, vectors = scipy.linalg.eigh(
            S, driver="evr", subset_by_value=(0.0, np.inf), check_finite=False
        )
        if len(values):
            return _scaled(values, vectors)
    values, vectors = scipy.linalg.eigh(S, driver="evd", check_finite=False)
    first = min(int(np.searchsorted(values, 0.0, side="right")), len(values) - 1)
    return _scaled(values[first:], vectors[:, first:])


def _scaled(values: Floats, vectors: Floats) -> Floats:
    scaled: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return scaled
