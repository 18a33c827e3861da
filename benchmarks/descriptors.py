"""How long descriptors take: ratio to a matrix product, all cores, start-up, memory.

Run with ``python -m benchmarks.descriptors``. A ratio is the fastest of many calls divided by the
fastest 1000 x 1000 float64 product of the same, interleaved run, so that it says little about
the machine and much about the code.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from resight.descriptors import DESCRIPTORS, descriptor
from resight.descriptors.describing import stream

# What the project promises, as ratios to the product.
LIMITS = {"lomo-dagger": 0.025, "lomo": 0.04, "gog": 0.25, "whos-dagger": 0.05, "whos-star": 0.05}
ROUNDS = 25
TURNS = 9
N_PATHS = 10_000

_FIRST_CALL = """
import time, numpy
begin = time.perf_counter()
from resight.descriptors import {name}
{name}(numpy.zeros((160, 64, 3), numpy.uint8))
print(time.perf_counter() - begin)
"""

_MANY_PATHS = """
import sys
from benchmarks.machine import peak_gigabytes
from resight.descriptors import descriptor
features = descriptor("lomo-dagger").extract(sys.argv[1:] * {repeats}).features
assert features.shape == ({n_paths}, 26960)
print(1000 * peak_gigabytes())
"""


def run() -> str:
    """Measure everything; return a section of Markdown."""
    with threadpool_limits(1):
        single, product = _single_thread()
    rows = [
        f"| {name} | {1e3 * seconds:.2f} | {seconds / product:.4f} | {LIMITS[name]} "
        f"| {_speed_up(name):.2f} |"
        for name, seconds in single.items()
    ]
    table = "\n".join(
        [
            "| descriptor | ms per image | ratio to the product | promised | two processes / one |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )
    return (
        f"## Descriptors\n\nOne thread, images of the size each descriptor measures; one 1000 x "
        f"1000 float64 product takes {1e3 * product:.1f} ms here; {_cores()} cores.\n\n{table}\n\n"
        f"{_starts()}\n\n{_memory()}\n"
    )


def _single_thread() -> tuple[dict[str, float], float]:
    matrix = np.random.default_rng(0).random((1000, 1000))
    calls: dict[str, Callable[[], object]] = {}
    for name in DESCRIPTORS:
        describe, image = descriptor(name).describe, _photo(64 if "whos" in name else 48)
        calls[name] = lambda describe=describe, image=image: describe(image)  # type: ignore[misc]
        calls[name]()
    best = dict.fromkeys(calls, np.inf)
    product = np.inf
    for _ in range(ROUNDS):
        product = min(product, _seconds(lambda: matrix @ matrix))
        for name, call in calls.items():
            best[name] = min(best[name], _seconds(call), _seconds(call))
    return best, product


def _speed_up(name: str) -> float:
    """Throughput of two processes, such as `resight extract` starts, to that of one alone.

    One and both work by turns, so that a slower minute of the machine counts for both; the median
    over the rounds.
    """
    context = multiprocessing.get_context("spawn")
    turns, said = context.Barrier(2), context.Queue()
    workers = [
        context.Process(target=_describe_by_turns, args=(name, leads, turns, said))
        for leads in (True, False)
    ]
    for worker in workers:
        worker.start()
    alone, both = np.zeros(TURNS), np.zeros(TURNS)  # images a second
    for _ in range(3 * TURNS):
        turn, is_alone, seconds = said.get()
        (alone if is_alone else both)[turn] += 1.0 / seconds
    for worker in workers:
        worker.join()
    return float(np.median(both / alone))


def _describe_by_turns(
    name: str, leads: bool, turns: Barrier, said: Queue[tuple[int, bool, float]]
) -> None:
    chosen = descriptor(name)
    photos = [_photo(64 if "whos" in name else 48, seed) for seed in range(16)]
    many = photos * (12 if name == "gog" else 100)  # about a second
    deque(stream(chosen, photos, n_jobs=1), maxlen=0)  # keeps nothing
    for turn in range(TURNS):
        for is_alone in (True, False):
            turns.wait()
            if leads or not is_alone:
                begin = time.perf_counter()
                deque(stream(chosen, many, n_jobs=1), maxlen=0)
                said.put((turn, is_alone, time.perf_counter() - begin))


def _starts() -> str:
    """First call in a new process, without and with compiled code from an earlier one."""
    lines = ["| first call in a new process | cold (compiles), s | warm, s |", "|---|---|---|"]
    for name in ("lomo", "gog", "whos"):
        with tempfile.TemporaryDirectory() as folder:
            seconds = [_first_call(name, folder) for _ in range(4)]
        lines.append(f"| {name} | {seconds[0]:.1f} | {min(seconds[1:]):.2f} |")
    return "\n".join(lines)


def _first_call(name: str, cache: str) -> float:
    program = _FIRST_CALL.format(name=name)
    return _printed_by([program], os.environ | {"NUMBA_CACHE_DIR": cache})


def _memory() -> str:
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"{i}.png")) for i in range(10)]
        for i, path in enumerate(paths):
            _save(path, _photo(48, i))
        program = _MANY_PATHS.format(repeats=N_PATHS // len(paths), n_paths=N_PATHS)
        megabytes = _printed_by([program, *paths], dict(os.environ))
    return f"`extract` of {N_PATHS:,} paths with LOMO-dagger: {megabytes:.0f} MB at most."


def _printed_by(arguments: list[str], environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _save(path: str, photo: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(photo).save(path)


def _photo(width: int, seed: int = 0) -> np.ndarray:
    """Coloured patches with noise, 128 rows high: as many different codes as photographs have."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (16, width // 8, 3))
    patches = np.repeat(np.repeat(coarse, 8, 0), 8, 1)
    return np.clip(patches + rng.normal(0, 10, patches.shape), 0, 255).astype(np.uint8)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _cores() -> int:
    able = getattr(os, "sched_getaffinity", None)
    return len(able(0)) if able else os.cpu_count() or 1


if __name__ == "__main__":
    print(run())
