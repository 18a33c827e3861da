"""Learners equal the codes of their authors, tested in every clone (tests/data/golden)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairs_kit import fit_listed
from resight import KISSME, KXQDA, LFDA, MFA, NFST, XQDA, KernelLFDA, KernelMFA, KernelNFST

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
DATA = np.load(GOLDEN / "two_cameras.npz")
DISTANCES = np.load(GOLDEN / "distances.npz")

ALL_PAIRS: dict[str, Any] = {"between_neighbors": None, "n_components": 40}

SQUARED: list[tuple[str, Any, float]] = [
    ("kxqda_py", KXQDA(), 1e-7),
    ("xqda", XQDA(solver="svd"), 1e-9),
    ("kissme_all", KISSME(pca=100), 1e-6),
    ("kissme34_all", KISSME(pca=34), 1e-6),
]
DRAWN_PAIRS: list[tuple[str, Any, float]] = [
    ("kissme", KISSME(pca=100), 1e-6),
    ("kissme34", KISSME(pca=34), 1e-6),
    ("kissme_reg", KISSME(pca=100, reg=0.1, dissimilar_weight=0.1), 1e-9),
]
PLAIN: list[tuple[str, Any, float]] = [
    ("nfst", NFST(), 1e-7),
    ("knfst", KernelNFST(), 1e-7),
    ("lfda", LFDA(pca=100), 1e-8),
    ("mfa", MFA(pca=100), 1e-8),
    # The published kernels are in single precision.
    *((f"klfda_{k}", KernelLFDA(kernel=k), 1e-4) for k in ("linear", "chi2", "chi2-rbf", "exp")),
    *((f"kmfa_{k}", KernelMFA(kernel=k, **ALL_PAIRS), 1e-4) for k in ("linear", "chi2-rbf")),
]


def error_of(learner: Any, method: str, *, squared: bool) -> float:
    """Largest difference relative to the largest published distance, up to one factor."""
    D, expected = learner.distances(DATA["Ta"], DATA["Tb"]), DISTANCES[method]
    D = D if squared else np.sqrt(D)
    factor = np.vdot(D, expected) / np.vdot(expected, expected)
    return float(np.abs(D / factor - expected).max() / np.abs(expected).max())


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, persons = np.vstack([DATA["Xa"], DATA["Xb"]]), np.concatenate([DATA["ya"], DATA["yb"]])
    return X, persons, np.repeat(["A", "B"], [len(DATA["ya"]), len(DATA["yb"])])


@pytest.mark.parametrize(("method", "learner", "tolerance"), [*SQUARED, *PLAIN])
def test_on_persons_and_cameras(method, learner, tolerance):
    squared = method in {name for name, _, _ in SQUARED}
    assert error_of(learner.fit(*rows()), method, squared=squared) < tolerance


@pytest.mark.parametrize(("method", "learner", "tolerance"), DRAWN_PAIRS)
def test_on_drawn_pairs(method, learner, tolerance):
    fit_listed(learner, rows()[0], DATA["pos"], DATA["neg"])
    assert error_of(learner, method, squared=True) < tolerance


def test_every_published_distance_is_compared():
    assert {name for name, _, _ in (*SQUARED, *PLAIN, *DRAWN_PAIRS)} == set(DISTANCES)
