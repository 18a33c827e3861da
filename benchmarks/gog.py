"""Where the time of GOG goes: each stage as a ratio to a matrix product.

Run with ``python -m benchmarks.gog``. Stages and product are timed in turn, one thread, and the
fastest of all rounds counts. Time is the thread's own processor time, so that other work on the
machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from resight.descriptors import _gog_fast as fast
from resight.descriptors.gog import COLOURS, HEIGHT, WIDTH, gog

ROUNDS = 40


def run() -> str:
    """Measure the stages; return a section of Markdown."""
    image = _photo()
    matrix = np.random.default_rng(0).random((1000, 1000))
    calls: dict[str, Callable[[], object]] = {"product": lambda: matrix @ matrix}
    calls |= _stages(image)
    calls["all of it"] = lambda: gog(image)
    with threadpool_limits(1):
        best = _fastest(calls, ROUNDS)
    product = best.pop("product")
    rows = [
        f"| {name} | {1e3 * seconds:.2f} | {seconds / product:.4f} |"
        for name, seconds in best.items()
    ]
    return "\n".join(
        [
            "## Stages of GOG",
            "",
            f"One {HEIGHT} x {WIDTH} image, four colour spaces, one thread; one 1000 x 1000 "
            f"float64 product takes {1e3 * product:.1f} ms here.",
            "",
            "| stage | ms | ratio to the product |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _stages(image: np.ndarray) -> dict[str, Callable[[], object]]:
    """Make calls that run one stage each, in all colour spaces, on what the stage before gave."""
    pixels = fast.pixel_groups(image)
    sums = fast.patch_moments(pixels)
    patches = [fast.patch_half_vectors(sums, space) for space in COLOURS]
    strips = [fast.strip_gaussians(vectors, HEIGHT, WIDTH) for vectors in patches]
    return {
        "pixel features": lambda: fast.pixel_groups(image),
        "sums over patches": lambda: fast.patch_moments(pixels),
        "patch Gaussians and their logarithms": lambda: [
            fast.patch_half_vectors(sums, space) for space in COLOURS
        ],
        "strip Gaussians": lambda: [
            fast.strip_gaussians(vectors, HEIGHT, WIDTH) for vectors in patches
        ],
        "their logarithms": lambda: [fast.strip_half_vectors(*strip) for strip in strips],
    }


def _fastest(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - begin)
    return best


def _photo() -> np.ndarray:
    """Coloured patches with noise: neither flat nor saturated."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3))
    patches = coarse.repeat(8, axis=0).repeat(8, axis=1)
    return np.clip(patches + rng.normal(0, 10, patches.shape), 0, 255).astype(np.uint8)


if __name__ == "__main__":
    print(run())
