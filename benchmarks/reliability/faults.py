"""Faults in every operation: two processes behind the shim share the work."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.reliability import Outcome, Scale
from benchmarks.reliability.shim import KINDS, build, environment, missing

_PROCESSES = 2
TEXT = """## Faults

A shim in front of the C library (`benchmarks/reliability/failing_io.c`) counts every change of a
file: write, flush, rename, truncation, removal, creation. The operation is run with the first
change failing, then with the second, and so on until it passes, on a fresh copy each time. After
each: reopen, check, do the same again, compare with a run without faults. Converting writes what
restoring writes and reads much longer: faults there are spread evenly over it.

- full disk: half of the bytes are written, then nothing fits any longer.
- I/O error: this one change fails, everything after it works.
- killed: the process is killed in the middle of this change.
- power cut: it is killed, and whatever was not flushed to the disk is taken back, contents as well
  as names of files; once more right after the operation is done. All of it: that some of it had
  reached the disk is not simulated, nor are folders that are lost and writes through memory maps
  (SQLite's `-shm`, which it makes anew after a crash).

A save of a model that is killed may leave a hidden folder `.NAME.*.part` beside the model; nobody
reads it, and it can be deleted.
"""


def measure(scale: Scale) -> Outcome:
    """Inject all faults and write the table."""
    reason = missing()
    if reason:
        return Outcome(f"{TEXT}\nNot measured: {reason}.", [])
    lines = _inject(scale.points)
    table: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for line in lines:
        table[line["operation"]][line["kind"]] = line
    rows = [f"| operation | {' | '.join(KINDS)} | failures |", "|---|" + "---|" * (len(KINDS) + 1)]
    for operation, kinds in table.items():
        points = " | ".join(str(kinds[kind]["points"]) for kind in KINDS)
        failed = sum(line["failed"] for line in kinds.values())
        rows.append(f"| {operation} | {points} | {failed} |")
    total = sum(line["points"] for line in lines)
    failed = sum(line["failed"] for line in lines)
    rows += ["", f"{total:,} faults injected, {failed} failures."]
    texts = [f"{line['operation']}: {text}" for line in lines for text in line["failures"]]
    return Outcome(TEXT + "\n" + "\n".join(rows), texts)


def _inject(points: int | None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        shim = build(Path(name))
        command = [sys.executable, "-m", "benchmarks.reliability.injection"]
        running = [
            subprocess.Popen(
                [*command, str(part), str(_PROCESSES), str(points or 0)],
                env=environment(shim),
                stdout=subprocess.PIPE,
                text=True,
            )
            for part in range(_PROCESSES)
        ]
        lines = []
        for process in running:
            for line in process.stdout or ():
                print(line.strip(), file=sys.stderr, flush=True)
                lines.append(json.loads(line))
            if process.wait():
                raise RuntimeError(f"injecting faults ended with code {process.returncode}")
    return sorted(lines, key=lambda line: line["operation"])
