"""k-XQDA against the plain statement of the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import best_cpu_seconds, peak_doubles, product_of
from benchmarks.plain import algorithm_1
from resight import KXQDA
from resight.kernels import Kernel
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# (persons, sightings of each in each camera, rounds)
SIZES = ((125, 1, 5), (225, 1, 5), (486, 1, 3), (486, 2, 2), (500, 4, 1))
N_TEST, N_FEATURES, N_LATENT = 200, 500, 200


@dataclass(frozen=True)
class Scene:
    """Kernel matrices of a training set in two cameras, first camera first, and of test rows."""

    K: Floats
    persons: Codes
    cameras: Codes
    test: Floats  # (2 n, N): queries, then gallery

    def distances(self, M: Floats) -> Floats:
        """Squared distances of test rows under d = (a - b)^T M (a - b)."""
        Q, G = np.split(self.test, 2)
        QM, GM = Q @ M, G @ M
        squares: Floats = (QM * Q).sum(axis=1)[:, None] + (GM * G).sum(axis=1) - 2 * QM @ G.T
        return squares


def run() -> str:
    """Measure each size, telling it when it is done; return a Markdown table."""
    lines = [
        "Fit on a given kernel matrix and distances of 200 x 200 test sightings, CPU seconds of "
        "one thread, best of some rounds by turns; `products` is the time of auto in N x N matrix "
        "products; errors are the largest difference of test distances from the plain statement, "
        "relative to the largest distance; memory is the most that a fit holds beside the kernel "
        "matrix.",
        "",
        "| N | persons | plain | dense | auto (path) | dense faster | auto faster | products "
        "| error dense | error auto | memory plain | dense | auto |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    sizes, seconds = [], []
    for n_persons, each, rounds in SIZES:
        scene = draw_scene(n_persons, (each, each))
        row, best = _compare(scene, n_persons, rounds)
        print(row, flush=True)
        lines.append(row)
        sizes.append(len(scene.K))
        seconds.append([best[name] for name in ("plain", "dense", "auto")])
    large = np.array(sizes) >= 972
    slopes = np.polyfit(np.log(np.array(sizes)[large]), np.log(np.array(seconds)[large]), 1)[0]
    growth = ", ".join(
        f"{name} N^{slope:.2f}"
        for name, slope in zip(("plain", "dense", "auto"), slopes, strict=True)
    )
    return "\n".join(
        [*lines, "", f"Growth from N = 972 on: {growth}. Memory in units of N^2 doubles."]
    )


def _compare(scene: Scene, n_persons: int, rounds: int) -> tuple[str, dict[str, float]]:
    found: dict[str, Floats] = {}
    learners = {name: KXQDA(kernel="precomputed", solver=name) for name in ("dense", "auto")}

    def plain() -> None:
        n_first = int((scene.cameras == 0).sum())
        found["plain"] = scene.distances(algorithm_1(scene.K, scene.persons, n_first))

    def ours(name: str) -> Callable[[], None]:
        def work() -> None:
            learner = learners[name].fit(scene.K, scene.persons, scene.cameras)
            found[name] = learner.distances(scene.test[:N_TEST], scene.test[N_TEST:])

        return work

    n = len(scene.K)
    best = best_cpu_seconds(
        {"plain": plain, "dense": ours("dense"), "auto": ours("auto"), "product": product_of(n)},
        rounds,
    )
    errors = {name: difference(found[name], found["plain"]) for name in learners}
    memory = {
        "plain": peak_doubles(plain) / n**2 if n <= 1944 else np.nan,
        **{name: peak_doubles(_solving(scene, name)) / n**2 for name in learners},
    }
    row = (
        f"| {n:,} | {n_persons} | {best['plain']:.2f} s | {best['dense']:.2f} s "
        f"| {best['auto']:.2f} s ({learners['auto'].solver_}) "
        f"| {best['plain'] / best['dense']:.1f} x | {best['plain'] / best['auto']:.1f} x "
        f"| {best['auto'] / best['product']:.1f} | {errors['dense']:.0e} | {errors['auto']:.0e} "
        f"| {memory['plain']:.1f} | {memory['dense']:.1f} | {memory['auto']:.1f} |"
    )
    return row.replace("nan", "-"), best


def difference(D: Floats, expected: Floats) -> float:
    """Return the largest difference, relative to the largest expected value."""
    return float(np.abs(D - expected).max() / np.abs(expected).max())


def _solving(scene: Scene, solver: str) -> Callable[[], object]:
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    return lambda: KernelPencil(scene.K, pairs).solve(1e-7, "identity", solver)


def draw_scene(n_persons: int, each: tuple[int, int]) -> Scene:
    """Draw persons who are all seen equally often by two cameras."""
    persons = np.concatenate([np.repeat(np.arange(n_persons), count) for count in each])
    return scene_of(persons, np.repeat([0, 1], [count * n_persons for count in each]), N_TEST)


def scene_of(persons: Codes, cameras: Codes, n_test: int) -> Scene:
    """RBF kernels of unit vectors: traits of persons, changed by camera and chance."""
    rng = np.random.default_rng(0)
    looks = rng.normal(size=(N_LATENT, N_FEATURES))
    shifts = rng.normal(size=(int(cameras.max()) + 1, N_LATENT)) / 2

    def seen(persons: Codes, cameras: Codes) -> Floats:
        traits = rng.normal(size=(int(persons.max()) + 1, N_LATENT))[persons] + shifts[cameras]
        traits += 0.6 * rng.normal(size=traits.shape)
        return traits @ looks + 10 * rng.normal(size=(len(persons), N_FEATURES))

    X = seen(persons, cameras)
    T = seen(np.tile(np.arange(n_test), 2), np.repeat([0, 1], n_test))
    centre = X.mean(axis=0)
    X, T = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X - centre, T - centre))
    kernel = Kernel("rbf")
    return Scene(kernel.fit_matrix(X), persons, cameras, kernel.rows(T, X))


if __name__ == "__main__":
    print(run())
