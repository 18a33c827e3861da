"""What the benchmarks share: fair timing, one thread, peak memory, a machine's own unit."""

from __future__ import annotations

import gc
import multiprocessing
import platform
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_info, threadpool_limits


def best_cpu_seconds(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run the works by turns, `rounds` times, on one BLAS thread; return the best CPU time of each.

    By turns, so that a noisy neighbour or a warm processor meets all of them alike.
    """
    best = dict.fromkeys(works, np.inf)
    with threadpool_limits(1):
        for _ in range(rounds):
            for name, work in works.items():
                gc.collect()
                start = time.process_time()
                work()
                best[name] = min(best[name], time.process_time() - start)
    return best


def product_of(n: int) -> Callable[[], object]:
    """Return a product of two n x n matrices to be timed: the unit that machines differ in."""
    A = np.random.default_rng(0).normal(size=(n, n))
    return lambda: A @ A


def peak_doubles(work: Callable[[], object]) -> float:
    """Return the most memory that arrays made by `work` held at once, in doubles."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 8
    finally:
        tracemalloc.stop()


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call `work` in a new process, so that the peak of its memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def peak_gigabytes() -> float:
    """Return the most memory this process ever held.

    From Linux's VmHWM: getrusage would count what the parent held when it was forked.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e9
    raise RuntimeError("this system does not tell the peak of a process (VmHWM)")


def forget_peak() -> None:
    """Let `peak_gigabytes` begin anew with what this process holds now (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def description() -> str:
    """Tell what the numbers were measured with."""
    blas = {
        f"{info['internal_api']} {info['version']}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    return (
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, {', '.join(sorted(blas))}"
    )
