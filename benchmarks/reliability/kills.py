"""Kills in the middle of operations, spread from the first acknowledgement to the end."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.reliability import Outcome, Scale
from benchmarks.reliability.afterwards import Clean, Failure, look
from benchmarks.reliability.child import Child, Tell
from benchmarks.reliability.erasing import Forget, Retain
from benchmarks.reliability.galleries import Add, Rebuild, Teach
from benchmarks.reliability.material import Material
from benchmarks.reliability.operations import Extract, Operation
from benchmarks.reliability.postgres import Server

STEPS = 4  # people forgotten, and times that old sightings are removed, in one operation
TEXT = """## Kills

The process is killed (SIGKILL) after its first acknowledgement, at moments spread evenly over the
rest of the operation; on PostgreSQL also the server with all its processes. Lost: what had been
acknowledged. Left over: what a finished erasing left in any file or table. Unfinishable: the same
command again does not lead to what a run without a kill leads to.
"""
_TRIES = 10  # a kill that comes too late is tried again, earlier


def measure(scale: Scale) -> Outcome:
    """Kill on both engines, each in a process of its own, and write the table."""
    with tempfile.TemporaryDirectory() as name:
        material = Material(Path(name) / "material")
        engines = [
            Child(lambda tell: _on_folders(material, Path(name) / "places", scale, tell), 3600),
            Child(lambda tell: _on_databases(material, scale, tell), 3600),
        ]
        lines = [line for engine in engines for line in engine.wait().told]
    broken = [str(engine.end) for engine in engines if "result" not in (engine.end or {})]
    counted = ("kills", "lost", "damaged", "left over", "unfinishable")
    rows = [f"| operation | engine | killed | {' | '.join(counted)} |", "|---" * 8 + "|"]
    for line in lines:
        counts = " | ".join(str(line[name]) for name in counted)
        rows.append(f"| {line['operation']} | {line['engine']} | {line['killed']} | {counts} |")
    texts = [
        f"{line['operation']}, {line['engine']}: {t}" for line in lines for t in line["failures"]
    ]
    return Outcome(TEXT + "\n" + "\n".join(rows), broken + texts)


def _on_folders(material: Material, work: Path, scale: Scale, tell: Tell) -> None:
    for operation in [*_operations(material), Extract(material)]:
        tell(_killed(operation, _Folders(work, operation), "the process", scale.kills))


def _on_databases(material: Material, scale: Scale, tell: Tell) -> None:
    with Server() as server:
        for operation in _operations(material):
            databases = _Databases(server, operation)
            tell(_killed(operation, databases, "the process", scale.kills))
            tell(_killed(operation, databases, "the server", scale.server_kills))


def _operations(material: Material) -> list[Operation]:
    return [kind(material, STEPS) for kind in (Add, Teach, Rebuild, Forget, Retain)]


class _Folders:
    """Copies of one beginning, in folders."""

    engine = "SQLite"

    def __init__(self, work: Path, operation: Operation) -> None:
        self._beginning, self._place = work / "beginning", work / "place"
        shutil.rmtree(work, ignore_errors=True)
        self._beginning.mkdir(parents=True)
        operation.prepare(str(self._beginning))
        if isinstance(operation, Extract):
            self.engine = "files"

    def fresh(self) -> str:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._beginning, self._place)
        return str(self._place)


class _Databases:
    """The same beginning again and again, each a gallery of its own in PostgreSQL."""

    engine = "PostgreSQL"

    def __init__(self, server: Server, operation: Operation) -> None:
        self.server = server
        self._operation = operation

    def fresh(self) -> str:
        place = self.server.new_place()
        self._operation.prepare(place)
        return place


def _killed(
    operation: Operation, places: _Folders | _Databases, who: str, kills: int
) -> dict[str, Any]:
    start = time.monotonic()
    clean, seconds = _clean(operation, places.fresh())
    failures: list[Failure] = []
    made = 0
    for number in range(kills):
        delay = seconds * (number + 0.5) / kills
        for _ in range(_TRIES):
            place = places.fresh()
            child = Child(_work(operation, place)).wait(for_first=True)
            if who == "the server" and isinstance(places, _Databases):
                time.sleep(delay)
                places.server.kill()
                child.wait()
            else:
                child.kill(delay)
            if child.end is None or "error" in child.end:
                break
            delay *= 0.7  # it was done already
        made += child.end is None or "error" in child.end
        failures += look(operation, place, clean, child)
    counts = Counter(failure.kind for failure in failures)
    line = {
        "operation": operation.name,
        "engine": places.engine,
        "killed": who,
        "kills": made,
        **{kind: counts[kind] for kind in ("lost", "damaged", "left over", "unfinishable")},
        "failures": [f"{f.kind}: {f.text}" for f in failures[:5]],
        "seconds": round(time.monotonic() - start, 1),
    }
    print(line, file=sys.stderr, flush=True)
    return line


def _work(operation: Operation, place: str) -> Callable[[Any], None]:
    return lambda tell: operation.act(place, tell)


def _clean(operation: Operation, place: str) -> tuple[Clean, float]:
    """Do it once without a kill: states around it, and seconds after the first acknowledgement."""
    before = operation.state(place)
    child = Child(_work(operation, place)).wait(for_first=True)
    start = time.monotonic()
    child.wait()
    seconds = time.monotonic() - start
    if child.end is None or "result" not in child.end:
        raise RuntimeError(f"{operation.name} fails without a kill: {child.end}")
    return Clean(before, operation.state(place)), seconds
