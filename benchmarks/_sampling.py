"""Run a command and watch how much memory it and its children hold together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

_SECONDS = 0.2
_PINNED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Watched(NamedTuple):
    """What a command printed, how long it took and the most memory it held.

    `resident` counts mapped files (feature tables, which the system may drop) and pages that
    processes share once for each; `own` only what cannot be dropped.
    """

    document: Any
    seconds: float
    resident: float  # GB
    own: float  # GB

    @property
    def cost(self) -> str:
        """Cells of a table."""
        return f"{self.seconds:.0f} s | {self.resident:.1f} GB | {self.own:.1f} GB"


def watch_resight(words: Sequence[str], folder: Path) -> Watched:
    """Run ``resight WORDS --json`` in `folder` as its users do, on all cores; raise if it fails."""
    command = [sys.executable, "-m", "resight", *words, "--json"]
    free = {name: value for name, value in os.environ.items() if name not in _PINNED}
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=free, stdout=subprocess.PIPE, text=True
    ) as process:
        peaks, printed = [0.0, 0.0], None
        while printed is None:
            held = _memory(process.pid)
            peaks = [max(pair) for pair in zip(peaks, held, strict=True)]
            with suppress(subprocess.TimeoutExpired):
                printed = process.communicate(timeout=_SECONDS)[0]
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"resight {' '.join(words)} ended with code {process.returncode}")
    return Watched(json.loads(printed), seconds, peaks[0] / 1e9, peaks[1] / 1e9)


def _memory(pid: int) -> tuple[float, float]:
    """Bytes that a process and its descendants hold: resident, and without mapped files."""
    resident = own = 0.0
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0, 0.0
    for process in family:
        try:
            held = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        resident += held.rss
        own += held.rss - held.shared
    return resident, own
