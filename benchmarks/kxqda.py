"""k-XQDA against the plain statement of the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import (
    best_cpu_seconds,
    in_fresh_process,
    peak_doubles,
    peak_gigabytes,
    product_of,
)
from benchmarks.plain import algorithm_1, published_xqda
from resight import KXQDA, XQDA
from resight.kernels import Kernel
from resight.learners._laplacian import CrossCameraPairs
from resight.learners._pencil import covariances
from resight.learners.kxqda import KernelPencil

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# (persons, sightings of each in each camera, rounds)
SIZES = ((125, 1, 5), (225, 1, 5), (486, 1, 3), (486, 2, 2), (500, 4, 1))
MARKET = (751, (9, 8), 169)  # 751 x 17 + 169 seen once = 12,936
N_TEST, N_FEATURES, N_LATENT = 200, 500, 200
WIDE = 26_960


@dataclass(frozen=True)
class Scene:
    """Kernel matrices of a training set in two cameras, first camera first, and of test rows."""

    K: Floats
    persons: Codes
    cameras: Codes
    test: Floats  # (2 N_TEST, N): queries, then gallery

    def distances(self, M: Floats) -> Floats:
        """Squared distances of test rows under d = (a - b)^T M (a - b)."""
        Q, G = self.test[:N_TEST], self.test[N_TEST:]
        QM, GM = Q @ M, G @ M
        squares: Floats = (QM * Q).sum(axis=1)[:, None] + (GM * G).sum(axis=1) - 2 * QM @ G.T
        return squares


def run() -> str:
    """Measure all tables; return Markdown."""
    return "\n\n".join([_against_plain(), _large(), _closed_form(), _against_xqda()])


def _against_plain() -> str:
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
        scene = _scene(n_persons, (each, each))
        row, best = _compare(scene, n_persons, rounds)
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
    errors = {name: _difference(found[name], found["plain"]) for name in learners}
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


def _difference(D: Floats, expected: Floats) -> float:
    return float(np.abs(D - expected).max() / np.abs(expected).max())


def _solving(scene: Scene, solver: str) -> Callable[[], object]:
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    return lambda: KernelPencil(scene.K, pairs).solve(1e-7, "identity", solver)


def _scene(n_persons: int, each: tuple[int, int], n_once: int = 0) -> Scene:
    """RBF kernels of unit vectors: traits of persons, changed by camera and chance."""
    rng = np.random.default_rng(0)
    looks, shifts = rng.normal(size=(N_LATENT, N_FEATURES)), rng.normal(size=(2, N_LATENT)) / 2

    def seen(persons: Codes, cameras: Codes) -> Floats:
        traits = rng.normal(size=(int(persons.max()) + 1, N_LATENT))[persons] + shifts[cameras]
        traits += 0.6 * rng.normal(size=traits.shape)
        return traits @ looks + 10 * rng.normal(size=(len(persons), N_FEATURES))

    once = np.arange(n_persons, n_persons + n_once)
    persons = np.concatenate(
        [np.repeat(np.arange(n_persons), each[0]), once, np.repeat(np.arange(n_persons), each[1])]
    )
    cameras = np.repeat([0, 1], [each[0] * n_persons + n_once, each[1] * n_persons])
    X = seen(persons, cameras)
    T = seen(np.tile(np.arange(N_TEST), 2), np.repeat([0, 1], N_TEST))
    centre = X.mean(axis=0)
    X, T = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X - centre, T - centre))
    kernel = Kernel("rbf")
    return Scene(kernel.fit_matrix(X), persons, cameras, kernel.rows(T, X))


def _large() -> str:
    n, seconds, path, gigabytes = in_fresh_process(_fit_large)
    return (
        f"N = {n:,}: {MARKET[0]} persons seen {MARKET[1][0]} and {MARKET[1][1]} times by two "
        f"cameras, {MARKET[2]} more seen once: `auto` took the path `{path}` and {seconds:.0f} CPU "
        f"seconds; peak memory of the process {gigabytes:.1f} GB, of which the kernel matrix "
        f"{n * n * 8 / 1e9:.1f}."
    )


def _fit_large() -> tuple[int, float, str, float]:
    scene = _scene(MARKET[0], MARKET[1], MARKET[2])
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    paths: list[str] = []
    best = best_cpu_seconds(
        {"auto": lambda: paths.append(KernelPencil(scene.K, pairs).solve(1e-7, "identity")[2])}, 1
    )
    return len(scene.K), best["auto"], paths[0], peak_gigabytes()


def _closed_form() -> str:
    lines = [
        "The paper's first claim: Theorems 1 and 2 against a sum over all cross-camera pairs, both "
        "for the two matrices Lambda_S and Lambda_D.",
        "",
        "| N | pairs | listing them | closed form | faster | relative difference |",
        "|---|---|---|---|---|---|",
    ]
    for n_persons, each, rounds in SIZES[:3]:
        scene = _scene(n_persons, (each, each))
        pairs = CrossCameraPairs(scene.persons, scene.cameras)
        found: dict[str, tuple[Floats, Floats]] = {}

        def listed(scene: Scene = scene, found: dict[str, tuple[Floats, Floats]] = found) -> None:
            found["listed"] = _listing_pairs(scene)

        def closed(
            scene: Scene = scene,
            pairs: CrossCameraPairs = pairs,
            found: dict[str, tuple[Floats, Floats]] = found,
        ) -> None:
            found["closed"] = covariances(scene.K, pairs)

        best = best_cpu_seconds({"listed": listed, "closed": closed}, min(rounds, 2))
        gap = max(
            _difference(np.tril(ours), np.tril(theirs))
            for ours, theirs in zip(found["closed"], found["listed"], strict=True)
        )
        lines.append(
            f"| {len(scene.K):,} | {pairs.everything.n_pairs:,} | {best['listed']:.3f} s "
            f"| {best['closed']:.4f} s | {best['listed'] / best['closed']:.0f} x | {gap:.0e} |"
        )
    return "\n".join(lines)


def _listing_pairs(scene: Scene) -> tuple[Floats, Floats]:
    """Sum (k_i - k_j)(k_i - k_j)^T over pairs, all of one first sighting at a time."""
    K, first, second = scene.K, np.flatnonzero(scene.cameras == 0), np.flatnonzero(scene.cameras)
    sums, counts = np.zeros((2, *K.shape)), np.zeros(2)
    for i in first:
        same = scene.persons[second] == scene.persons[i]
        for kind, chosen in enumerate((same, ~same)):
            differences = K[i] - K[second[chosen]]
            sums[kind] += differences.T @ differences
            counts[kind] += len(differences)
    return sums[0] / counts[0], sums[1] / counts[1]


def _against_xqda() -> str:
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(486), 2), np.repeat([0, 1], 486)
    X = rng.normal(size=(486, WIDE))[persons] + rng.normal(size=(972, WIDE))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    best = best_cpu_seconds(
        {
            "k-XQDA, kernel matrix included": lambda: KXQDA().fit(X, persons, cameras),
            "XQDA, this package": lambda: XQDA().fit(X, persons, cameras),
            "XQDA as published (QR of the features, SVD)": lambda: published_xqda(X, persons, 486),
        },
        2,
    )
    unit = best["k-XQDA, kernel matrix included"]
    rows = [f"| {name} | {time:.2f} s | {time / unit:.2f} |" for name, time in best.items()]
    return "\n".join(
        [
            f"The paper's second claim: k-XQDA against XQDA on {WIDE:,} features, N = 972. The "
            f"published XQDA first reduces the features to N coordinates; without that it would "
            f"take eigenvectors of a {WIDE:,} x {WIDE:,} matrix.",
            "",
            "| fit | time | relative |",
            "|---|---|---|",
            *rows,
        ]
    )


if __name__ == "__main__":
    print(run())
