"""Whether stated probabilities come true: reliability diagram and proper scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
N_BINS = 10


@dataclass(frozen=True)
class Reliability:
    """What was stated and what happened, in equally filled bins."""

    stated: Floats  # (n_bins,), mean probability of each bin
    came_true: Floats  # (n_bins,), rate of success
    counts: NDArray[np.intp]  # (n_bins,)

    @classmethod
    def of(cls, probabilities: ArrayLike, right: ArrayLike, n_bins: int = N_BINS) -> Reliability:
        """Sort statements by probability into bins of equal size."""
        p, hit = np.asarray(probabilities, float), np.asarray(right, float)
        order = np.argsort(p, kind="stable")
        parts = [part for part in np.array_split(order, n_bins) if len(part)]
        return cls(
            np.array([p[part].mean() for part in parts]),
            np.array([hit[part].mean() for part in parts]),
            np.array([len(part) for part in parts]),
        )

    @property
    def error(self) -> float:
        """Expected calibration error: mean gap between stated and come true."""
        gaps = np.abs(self.stated - self.came_true)
        return float(gaps @ self.counts / self.counts.sum())


def log_loss(probabilities: ArrayLike, right: ArrayLike) -> float:
    """Mean negative log-likelihood of what happened."""
    p = np.clip(np.asarray(probabilities, float), 1e-12, 1 - 1e-12)
    hit = np.asarray(right, bool)
    return float(-np.mean(np.where(hit, np.log(p), np.log1p(-p))))


def brier_score(probabilities: ArrayLike, right: ArrayLike) -> float:
    """Mean squared difference between stated probability and what happened (1 or 0)."""
    p, hit = np.asarray(probabilities, float), np.asarray(right, float)
    return float(np.mean((p - hit) ** 2))


def scores(probabilities: ArrayLike, right: ArrayLike) -> dict[str, Any]:
    """Return everything a report says about stated probabilities, in plain types.

    The constant to compare with is the rate of success itself, the best that one number for all
    queries can do.
    """
    p, hit = np.asarray(probabilities, float), np.asarray(right, bool)
    constant = np.full(len(p), hit.mean())
    diagram = Reliability.of(p, hit)
    return {
        "queries": len(p),
        "right": float(hit.mean()),
        "ece": diagram.error,
        "log_loss": log_loss(p, hit),
        "log_loss_constant": log_loss(constant, hit),
        "brier": brier_score(p, hit),
        "brier_constant": brier_score(constant, hit),
        "bins": {
            "stated": diagram.stated.tolist(),
            "came_true": diagram.came_true.tolist(),
            "counts": diagram.counts.tolist(),
        },
    }
