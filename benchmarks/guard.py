"""How far the fast paths of exact k-XQDA are from the dense path, on awkward sightings too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from resight import KXQDA
from resight.errors import InputError
from resight.learners import _kernel_pencil, _solvers

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Change = Callable[[np.random.Generator, Floats, Codes], None]

CASES = 400  # of each kind
MOST = 500  # sightings, so that minutes suffice; paths of thousands are taken all the same
TESTED = 30  # sightings of other people, half of them queries
ALLOWED = 1e-6
BEYOND = 1e9  # an eigenvalue above costs `dense` itself so many digits


class Compared(NamedTuple):
    """One setting fitted both ways."""

    path: str
    error: float  # of test distances, relative to the largest
    largest: float  # eigenvalue


def run() -> str:
    """Compare each kind of sightings; return a table."""
    lines = [
        f"{CASES} drawn settings of each kind: 6 to {MOST} sightings by two to six cameras or "
        "without cameras, equal and unequal counts, four kernels, three bandwidths, lambda I and "
        "its relative form, all directions or few, matrices decomposed by way of a band or not. "
        f"Errors are of the distances of {TESTED // 2} x {TESTED // 2} other sightings, relative "
        f"to the largest, against `dense`; allowed is {ALLOWED:g}. Where an eigenvalue is above "
        f"{BEYOND:g}, `dense` itself loses so many digits: these fits are counted apart.",
        "",
        "| sightings | fits by a fast path | largest error | above the limit | fits with an "
        "eigenvalue above 1e9 | largest error |",
        "|---|---|---|---|---|---|",
    ]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # settings that are round-off say so
        for name, change in KINDS.items():
            found = [one for seed in range(CASES) if (one := _compared(seed, change)) is not None]
            fast = [one for one in found if one.path != "dense"]
            usual = [one.error for one in fast if one.largest <= BEYOND]
            beyond = [one.error for one in fast if one.largest > BEYOND]
            above = sum(error > ALLOWED for error in usual)
            lines.append(
                f"| {name} | {len(usual)} | {max(usual):.0e} | {above} "
                f"| {len(beyond)} | {max(beyond, default=0.0):.0e} |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines)


def _compared(seed: int, change: Change) -> Compared | None:
    """Fit one drawn setting by both paths; None where it is refused."""
    rng = np.random.default_rng([seed, 7])
    X, persons, cameras, T = _sightings(rng)
    change(rng, X, persons)
    views = cameras if rng.random() < 0.8 else None
    setting: dict[str, Any] = {
        "kernel": str(rng.choice(["rbf", "linear", "poly", "exp"])),
        "width": float(rng.choice([0.1, 1.0, 10.0])),
        "reg": 10.0 ** rng.uniform(-7, -0.5),
        "reg_form": str(rng.choice(["identity", "relative"])),
        "n_components": None if rng.random() < 0.6 else int(rng.integers(1, 40)),
    }
    pairs_from = 1 if rng.random() < 0.7 else max(1, len(X) // 2)
    band_from = 1 if rng.random() < 0.5 else 2 * MOST
    try:
        dense = KXQDA(**setting, solver="dense").fit(X, persons, views)
        with (
            patch.object(_kernel_pencil, "PAIRS_FROM", pairs_from),
            patch.object(_solvers, "_BAND_FROM", band_from),
        ):
            auto = KXQDA(**setting).fit(X, persons, views)
    except InputError:
        return None
    D, expected = (one.distances(*np.split(T, 2)) for one in (auto, dense))
    error = float(np.abs(D - expected).max() / max(np.abs(expected).max(), 1e-300))
    return Compared(auto.solver_, error, float(dense.eigenvalues_[0]))


def _sightings(rng: np.random.Generator) -> tuple[Floats, Codes, Codes, Floats]:
    """Draw people around centres, by cameras that shift them, and sightings of other people."""
    counts = np.ones((int(rng.integers(3, 60)), int(rng.choice([2, 3, 6]))), np.intp)
    counts *= rng.integers(1, 5, counts.shape if rng.random() < 0.6 else counts.shape[1])
    if rng.random() < 0.3:  # some whom the first camera has not seen
        counts[1:][rng.random(len(counts) - 1) < 0.3, 0] = 0
    counts = counts[: max(3, MOST * len(counts) // max(MOST, int(counts.sum())))]
    persons, cameras = (np.repeat(of, counts.ravel()) for of in np.indices(counts.shape))
    n_features, noise = int(rng.choice([5, 20, 60, 200, 400])), rng.choice([0.05, 0.3, 0.7, 1.5])
    X = rng.normal(size=(len(counts), n_features))[persons]
    X += 0.5 * rng.normal(size=(counts.shape[1], n_features))[cameras]
    X += noise * rng.normal(size=X.shape)
    T = rng.normal(size=(TESTED, n_features)) * np.sqrt(1 + noise**2)
    centre, unit = X.mean(axis=0), rng.random() < 0.5
    X, T = X - centre, T - centre
    if unit:
        X, T = (M / np.linalg.norm(M, axis=1, keepdims=True) for M in (X, T))
    return X, persons, cameras, T


def _alike(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    for person in range(max(1, int(persons.max()) // 3)):
        X[persons == person] = X[persons == person][0]


def _empty(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    X[rng.random(len(X)) < 0.1] = 0.0


def _few_dimensions(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    X[:, 3:] = X[:, :3] @ rng.normal(size=(3, X.shape[1] - 3))


def _one_most_often(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    taken = rng.random(len(X)) < rng.uniform(0.1, 0.4)
    persons[taken] = 0
    X[taken] = X[0] + 0.3 * (X[taken] - X[0])


def _one_far(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    towards = rng.normal(size=X.shape[1])
    towards *= 10.0 ** rng.uniform(0, 3) / np.linalg.norm(towards)
    X[persons == 0] = towards + 1e-3 * rng.normal(size=((persons == 0).sum(), X.shape[1]))


def _as_drawn(rng: np.random.Generator, X: Floats, persons: Codes) -> None:
    pass


KINDS: dict[str, Change] = {
    "as drawn": _as_drawn,
    "a third of the people with equal images": _alike,
    "a tenth without any features": _empty,
    "three dimensions": _few_dimensions,
    "one person with many sightings": _one_most_often,
    "one person far from all others, with nearly equal images": _one_far,
}


if __name__ == "__main__":
    print(run())
