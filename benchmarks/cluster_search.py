"""Search over a cluster: a million embeddings in the memory of one Dask worker, and of two.

Both are asked in turns for the same batches. Every worker has one thread, and so has its BLAS; the
embeddings are read from a gallery in SQLite, part by part. Beside the clock stands the processor
time of the worker that has most to do, which does not depend on what else the machine does.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks._dask import DaskProcesses
from resight.gallery.engines.base import Engine, Rows, Table
from resight.gallery.engines.sqlite import SqliteEngine
from resight.gallery.index import ExactIndex
from resight.gallery.labels import Labels
from resight.gallery.manifest import Generation, Manifest
from resight.gallery.parts import SIZE, Parts
from resight.gallery.view import View
from resight.workers.executors import cluster

N, R, BATCH, K, ROUNDS, AT_LEAST = 1_000_000, 256, 32, 20, 7, 1.6
_ADDED = 50_000  # embeddings written at once
_REPEATED = 3  # batches of a turn: processor time is counted in hundredths of a second
Floats32 = NDArray[np.float32]


def run(n: int = N, rounds: int = ROUNDS) -> str:
    """Measure and write a table; fail where two workers are too slow or an answer differs."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, DaskProcesses() as processes:
        embeddings = rng.normal(size=(n, R)).astype(np.float32)
        queries = rng.normal(size=(BATCH, R)).astype(np.float32)
        engine = SqliteEngine(str(Path(folder) / "gallery"))
        view = stored(engine, embeddings)
        processes.scheduler()
        workers = [psutil.Process(processes.worker().pid) for _ in range(2)]
        executor = cluster(processes.address, timeout=60)
        with executor:
            while len(executor.workers(fresh=True)) < 2:
                time.sleep(0.05)
            one = Parts(engine, _First(executor))  # type: ignore[arg-type]
            two = Parts(engine, executor)
            begin = time.perf_counter()
            _require_equal(one, view, embeddings, queries)
            loading = time.perf_counter() - begin
            _require_equal(two, view, embeddings, queries)
            work = {name: _asking(parts, view, queries) for name, parts in (("1", one), ("2", two))}
            clock, busy = _in_turns(work, workers, rounds)
    ratio, of_processor = clock["1"] / clock["2"], busy["1"] / busy["2"]
    lines = [
        f"{n:,} x {R} in parts of {SIZE:,}, batches of {BATCH} queries, best of {rounds} in turns. "
        f"One worker read them from SQLite and gave its first answer in {loading:.0f} s. Answers "
        "are equal to those of one process to the last digit.",
        "",
        "| workers | a batch | ratio | at least | processor of the busiest worker | ratio |",
        "|---|---|---|---|---|---|",
        f"| 1 | {1e3 * clock['1']:.0f} ms | 1 | | {1e3 * busy['1']:.0f} ms | 1 |",
        f"| 2 | {1e3 * clock['2']:.0f} ms | {ratio:.2f} | {AT_LEAST} | {1e3 * busy['2']:.0f} ms | "
        f"{of_processor:.2f} |",
    ]
    if ratio < AT_LEAST:
        raise RuntimeError("\n".join(lines))
    return "\n".join(lines)


class _First:
    """The first worker of a cluster, as if it were the only one."""

    def __init__(self, executor: Any) -> None:
        self.submit, self.worker_died, self._all = (
            executor.submit,
            executor.worker_died,
            executor.workers,
        )

    def workers(self, *, fresh: bool = False) -> list[str]:
        """Return its address alone."""
        return list(self._all(fresh=fresh)[:1])


def stored(engine: Engine, embeddings: Floats32) -> View:
    """Store embeddings as a gallery; return a view of it that holds none of them."""
    n, width = embeddings.shape
    engine.create()
    engine.start_generation(1, width)
    text, none = np.full(n, ""), np.full(n, np.nan)
    ids = np.array([f"{i:024x}" for i in range(n)])
    table = Table(ids, text, np.full(n, "door"), none, text, text, np.arange(n, dtype=float))
    for start in range(0, n, _ADDED):
        rows = np.arange(start, min(start + _ADDED, n))
        images = [b""] * len(rows)
        engine.add(Rows(table.select(rows), images, None, embeddings[rows]), 1)
    manifest = Manifest("drawn", width, (Generation(1, "drawn", width, "create"),))
    labels = Labels(ids, text, [])
    return View(manifest, None, engine.table(), labels, None, engine.version())


def _require_equal(parts: Parts, view: View, embeddings: Floats32, queries: Floats32) -> None:
    found, missing = parts.nearest(view, queries, K, None)
    for (rows, distances), (expected, exact) in zip(
        found, ExactIndex(embeddings).search(queries, K), strict=True
    ):
        if missing or rows.tolist() != expected.tolist() or distances.tolist() != exact.tolist():
            raise RuntimeError("an answer of the cluster differs from that of one process")


def _asking(parts: Parts, view: View, queries: Floats32) -> Callable[[], object]:
    return lambda: parts.nearest(view, queries, K, None)


def _in_turns(
    work: dict[str, Callable[[], object]], workers: list[psutil.Process], rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best time of each, and the median processor time of its busiest worker."""
    clock: dict[str, list[float]] = {name: [] for name in work}
    busy: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            before = [sum(worker.cpu_times()[:2]) for worker in workers]
            begin = time.perf_counter()
            for _ in range(_REPEATED):
                call()
            clock[name].append((time.perf_counter() - begin) / _REPEATED)
            after = [sum(worker.cpu_times()[:2]) for worker in workers]
            taken = max(b - a for a, b in zip(before, after, strict=True))
            busy[name].append(taken / _REPEATED)
    return {n: min(times) for n, times in clock.items()}, {n: median(t) for n, t in busy.items()}


if __name__ == "__main__":
    print(run())
