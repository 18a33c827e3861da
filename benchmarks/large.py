"""k-XQDA on as many sightings as the training set of Market-1501."""

from __future__ import annotations

from benchmarks.kxqda import draw_scene
from benchmarks.machine import best_cpu_seconds, in_fresh_process, peak_gigabytes
from resight.learners._kernel_pencil import KernelPencil
from resight.learners._laplacian import CrossCameraPairs

# 751 x 17 + 169 seen once = 12,936
N_PERSONS, EACH, N_ONCE = 751, (9, 8), 169


def run() -> str:
    """Fit in a fresh process; return a sentence."""
    n, seconds, path, gigabytes = in_fresh_process(_fit_large)
    return (
        f"N = {n:,}: {N_PERSONS} persons seen {EACH[0]} and {EACH[1]} times by two "
        f"cameras, {N_ONCE} more seen once: `auto` took the path `{path}` and {seconds:.0f} CPU "
        f"seconds; peak memory of the process {gigabytes:.1f} GB, of which the kernel matrix "
        f"{n * n * 8 / 1e9:.1f}."
    )


def _fit_large() -> tuple[int, float, str, float]:
    scene = draw_scene(N_PERSONS, EACH, N_ONCE)
    pairs = CrossCameraPairs(scene.persons, scene.cameras)
    paths: list[str] = []
    best = best_cpu_seconds(
        {"auto": lambda: paths.append(KernelPencil(scene.K, pairs).solve(1e-7, "identity")[2])}, 1
    )
    return len(scene.K), best["auto"], paths[0], peak_gigabytes()


if __name__ == "__main__":
    print(run())
