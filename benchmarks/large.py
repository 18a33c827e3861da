"""Exact k-XQDA on as many sightings as Market-1501 trains on, with unequal counts."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.kxqda import Scene, difference, scene_of
from benchmarks.machine import in_fresh_process, peak_gigabytes
from benchmarks.market import CAMERAS, TRAIN, TRAIN_PEOPLE, sightings_of
from resight.evaluation import cmc
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._solvers import direction_weights

TESTED = 1000  # other people, in two cameras
FEW = 1000
FORMS = (("kernel", 1e-4), ("identity", 1e-7))


class Fitted(NamedTuple):
    """One fit: processor seconds, path, directions, memory, distances of test sightings."""

    seconds: float
    path: str
    n_components: int
    rates: tuple[float, float]  # GFlop/s of products in float64 and float32, before and after it
    gigabytes: float
    distances: NDArray[np.float64]
    of_few: NDArray[np.float64]  # with the leading directions alone


def run(n: int = TRAIN, people: int = TRAIN_PEOPLE, few: int = FEW) -> str:
    """Fit each way in a fresh process; return a table."""
    lines = [
        f"N = {n:,} drawn sightings of {people} people by {CAMERAS} cameras, seen unequally often; "
        "kernel matrix given; CPU seconds of one thread. The bound is the arithmetic "
        "of the path `pairs` (symmetric updates, inverse, reduction, back-transformation, "
        "coefficients) at the rates of matrix products in float64 and float32, measured before and "
        f"after each fit. Errors are of the distances of {TESTED} x {TESTED} test sightings, "
        "relative to the largest, against `dense` with as many directions; rank 1 is the mean of "
        "both ways.",
        "",
        "| lambda | path | directions | fit | times faster | products, GFlop/s | to the bound "
        "| error | rank 1, % | memory of the process |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for form, reg in FORMS:
        dense: Fitted | None = None
        for solver, wanted in (("dense", None), ("auto", None), ("auto", few)):
            fit = in_fresh_process(_fit, n, people, form, reg, solver, wanted, few)
            dense = dense or fit
            bound = _flops(n, fit.n_components, form, fit.rates)
            to_bound = f"{fit.seconds / bound:.2f}" if fit.path == "pairs" else "-"
            expected = dense.of_few if wanted else dense.distances
            row = (
                f"| {form} {reg:g} | {fit.path} | {fit.n_components:,} | {fit.seconds:.0f} s "
                f"| {dense.seconds / fit.seconds:.1f} "
                f"| {fit.rates[0]:.0f} and {fit.rates[1]:.0f} | {to_bound} "
                f"| {difference(fit.distances, expected):.0e} | {_rank1(fit.distances):.1f} "
                f"| {fit.gigabytes:.1f} GB |"
            )
            print(row, flush=True)
            lines.append(row)
    return "\n".join(lines)


def _fit(
    n: int, people: int, form: str, reg: float, solver: str, wanted: int | None, few: int
) -> Fitted:
    rows = sightings_of(people, CAMERAS, n, seed=0)
    scene = scene_of(rows[:, 0], rows[:, 1], TESTED)
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    with threadpool_limits(1):
        before = _product_rates()
        start = time.process_time()
        mu, Theta, path = KernelPencil(scene.K, pairs).solve(reg, form, solver, wanted)
        seconds = time.process_time() - start
        rates = np.mean([before, _product_rates()], axis=0).tolist()
        coef = Theta * direction_weights(mu)
        D, of_few = _distances(scene, coef), _distances(scene, coef[:, :few])
    return Fitted(seconds, path, len(mu), tuple(rates), peak_gigabytes(), D, of_few)


def _distances(scene: Scene, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    Q, G = np.split(scene.test @ coef, 2)
    squares: NDArray[np.float64] = (Q**2).sum(axis=1)[:, None] + (G**2).sum(axis=1) - 2 * Q @ G.T
    return squares


def _rank1(D: NDArray[np.float64]) -> float:
    people = np.arange(len(D))
    return 100 * float(np.mean([cmc(both, people, people)[0] for both in (D, D.T)]))


def _flops(n: int, k: int, form: str, rates: tuple[float, float]) -> float:
    """Seconds that the arithmetic of the path `pairs` takes at the rates of products."""
    squared = form != "kernel"
    double = n**3 + 2 * n * n * k + (n**3 + 2 * n * n * k if squared else 0)
    single = 4 / 3 * n**3 + 2 * n * n * k
    return (double / rates[0] + single / rates[1]) / 1e9


def _product_rates(n: int = 3000) -> tuple[float, float]:
    """GFlop/s of matrix products in float64 and float32."""
    best = [np.inf, np.inf]
    for number, kind in enumerate((np.float64, np.float32)):
        A = np.random.default_rng(0).normal(size=(n, n)).astype(kind)
        for _ in range(3):
            start = time.process_time()
            A @ A
            best[number] = min(best[number], time.process_time() - start)
    return 2 * n**3 / best[0] / 1e9, 2 * n**3 / best[1] / 1e9


if __name__ == "__main__":
    print(run())
