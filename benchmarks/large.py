"""Exact k-XQDA on as many sightings as Market-1501 trains on, with unequal counts."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack, solve_triangular
from threadpoolctl import threadpool_limits

from benchmarks.kxqda import Scene, difference, scene_of
from benchmarks.machine import in_fresh_process, peak_gigabytes
from benchmarks.market import CAMERAS, TRAIN, TRAIN_PEOPLE, sightings_of
from resight.evaluation import cmc
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pencil import covariances, direction_weights

TESTED = 1000  # other people, in two cameras
FEW = 1000
FORMS = (("identity", 1e-7), ("kernel", 1e-4))


class Fitted(NamedTuple):
    """One fit: processor seconds, path, directions, distances of test sightings, memory."""

    seconds: float
    path: str
    n_components: int
    distances: NDArray[np.float64]
    gigabytes: float


def run(n: int = TRAIN, people: int = TRAIN_PEOPLE, few: int = FEW) -> str:
    """Fit each way in a fresh process; return a table."""
    rates = {kind: in_fresh_process(_product_rate, kind) for kind in ("float64", "float32")}
    lines = [
        f"N = {n:,} drawn sightings of {people} people by {CAMERAS} cameras, seen unequally often; "
        "kernel matrix given; CPU seconds of one thread. `before` is the dense path as it was: "
        "both matrices, Cholesky factor, reduction, all eigenvectors. The bound is the arithmetic "
        "of the path `pairs` (symmetric updates, inverse, tridiagonal form, back-transformation, "
        f"coefficients) at this machine's rates of matrix products ({rates['float64']:.0f} and "
        f"{rates['float32']:.0f} GFlop/s). Errors are of the distances of {TESTED} x {TESTED} test "
        "sightings, relative to the largest; rank 1 is the mean of both ways.",
        "",
        "| lambda | path | directions | fit | times faster | to the bound | error | rank 1, % "
        "| memory of the process |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for form, reg in FORMS:
        before = in_fresh_process(_fit, n, people, form, reg, None, True)
        ways = (
            ("before", before),
            (None, in_fresh_process(_fit, n, people, form, reg, None, False)),
            (None, in_fresh_process(_fit, n, people, form, reg, few, False)),
        )
        for name, fit in ways:
            bound = _flops(n, fit.n_components, form, rates)
            to_bound = f"{fit.seconds / bound:.2f}" if fit.path == "pairs" else "-"
            error = "-"
            if fit is ways[1][1]:  # all directions: the others differ by what they leave out
                error = f"{difference(fit.distances, before.distances):.0e}"
            times = before.seconds / fit.seconds
            row = (
                f"| {form} {reg:g} | {name or fit.path} | {fit.n_components:,} "
                f"| {fit.seconds:.0f} s | {times:.1f} | {to_bound} | {error} "
                f"| {_rank1(fit.distances):.1f} | {fit.gigabytes:.1f} GB |"
            )
            print(row, flush=True)
            lines.append(row)
    return "\n".join(lines)


def _fit(n: int, people: int, form: str, reg: float, few: int | None, before: bool) -> Fitted:
    rows = sightings_of(people, CAMERAS, n, seed=0)
    scene = scene_of(rows[:, 0], rows[:, 1], TESTED)
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    with threadpool_limits(1):
        start = time.process_time()
        if before:
            mu, Theta = _dense_before(scene.K, pairs, reg, form)
            path = "before"
        else:
            mu, Theta, path = KernelPencil(scene.K, pairs).solve(reg, form, "auto", few)
        seconds = time.process_time() - start
        D = _distances(scene, Theta * direction_weights(mu))
    return Fitted(seconds, path, len(mu), D, peak_gigabytes())


def _dense_before(
    K: NDArray[np.float64], pairs: CrossCameraPairs, reg: float, form: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    similar, dissimilar = covariances(K, pairs)
    if form == "kernel":
        similar += reg * K
    else:
        similar.flat[:: len(K) + 1] += reg
    L, _ = lapack.dpotrf(similar, lower=1, overwrite_a=1, clean=0)
    C, _ = lapack.dsygst(dissimilar, L, itype=1, lower=1, overwrite_a=1)
    mu, V = eigh(C, lower=True, overwrite_a=True, check_finite=False, driver="evd")
    kept = mu > 1.0
    mu, V = mu[kept][::-1], V[:, kept][:, ::-1]
    return mu, solve_triangular(L, V, lower=True, trans="T", check_finite=False)


def _distances(scene: Scene, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    Q, G = np.split(scene.test @ coef, 2)
    squares: NDArray[np.float64] = (Q**2).sum(axis=1)[:, None] + (G**2).sum(axis=1) - 2 * Q @ G.T
    return squares


def _rank1(D: NDArray[np.float64]) -> float:
    people = np.arange(len(D))
    return 100 * float(np.mean([cmc(both, people, people)[0] for both in (D, D.T)]))


def _flops(n: int, k: int, form: str, rates: dict[str, float]) -> float:
    """Seconds that the arithmetic of the path `pairs` takes at the rates of products."""
    squared = form != "kernel"
    double = n**3 + 2 * n * n * k + (n**3 + 2 * n * n * k if squared else 0)
    single = 4 / 3 * n**3 + 2 * n * n * k
    return (double / rates["float64"] + single / rates["float32"]) / 1e9


def _product_rate(kind: str, n: int = 3000) -> float:
    """GFlop/s of a matrix product."""
    A = np.random.default_rng(0).normal(size=(n, n)).astype(kind)
    with threadpool_limits(1):
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            A @ A
            best = min(best, time.process_time() - start)
    return 2 * n**3 / best / 1e9


if __name__ == "__main__":
    print(run())
