"""Faults at every change of a file: the n-th fails, for n = 1, 2, 3, ... until the work passes.

Run by ``python -m benchmarks.reliability`` as a process of its own, behind the shim.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.reliability.afterwards import Clean, equal, look
from benchmarks.reliability.child import Child, Tell
from benchmarks.reliability.copying import Backup, Convert, Restore
from benchmarks.reliability.erasing import Forget, Retain
from benchmarks.reliability.galleries import Add, Create, Rebuild, Teach, UndoRebuild
from benchmarks.reliability.material import Material
from benchmarks.reliability.operations import FILES, Operation
from benchmarks.reliability.shim import KINDS, Faults

GALLERY = (Create, Add, Teach, Rebuild, UndoRebuild, Forget, Retain, Backup, Restore, Convert)
OPERATIONS: tuple[type[Operation], ...] = (*GALLERY, *FILES)
AFTER = -1  # number of a change that never comes
FEW = 20  # changes that are not worth a sample
KEPT = 5  # failures spelt out for each operation and kind


def run(operations: list[Operation], work: Path, sample: int | None) -> Iterator[dict[str, Any]]:
    """Inject every fault into every operation, or a sample spread over each of them."""
    for operation in operations:
        bench = Bench(operation, work)
        for kind in KINDS:
            start = time.monotonic()
            points, failures = bench.inject_all(kind, sample)
            yield {
                "operation": operation.name,
                "kind": kind,
                "changes": bench.changes,
                "points": points,
                "failed": len(failures),
                "failures": failures[:KEPT],
                "seconds": round(time.monotonic() - start, 1),
            }


class Bench:
    """One operation on copies of one beginning."""

    def __init__(self, operation: Operation, work: Path) -> None:
        self._operation = operation
        self._beginning = work / "beginning"
        self._place = work / "place"
        self._faults = Faults()
        shutil.rmtree(self._beginning, ignore_errors=True)
        self._beginning.mkdir(parents=True)
        operation.prepare(str(self._beginning))
        self.changes = 0
        self.clean = self._run_clean()

    def inject_all(self, kind: str, sample: int | None) -> tuple[int, list[str]]:
        """Inject one kind at every point, or at some; return how many, and what went wrong."""
        failures: list[str] = []
        points = 0
        offset = KINDS[kind] / (len(KINDS) + 1)  # another part of the operation for each kind
        for nth in _spread(self.changes, sample or self._operation.most, offset):
            hit, wrong = self.inject(kind, nth)
            if not hit:
                break
            points += 1
            failures += wrong
        if kind == "power cut":  # once more right after the operation: done means on the disk
            points += 1
            failures += self.inject(kind, AFTER)[1]
        return points, failures

    def _run_clean(self) -> Clean:
        self._copy()
        operation, place = self._operation, str(self._place)
        before = operation.state(place)
        child = Child(lambda tell: self._act(tell, "", 0)).wait()
        if child.end is None or "result" not in child.end:
            raise RuntimeError(f"{operation.name} fails without any fault: {child.end}")
        self.changes = int(child.end["result"])
        clean = Clean(before, operation.state(place))
        wrong = operation.problems(place) + operation.leftovers(place, operation.steps)
        if wrong or equal(before, clean.after):
            raise RuntimeError(f"{operation.name} without any fault: {wrong or 'no change'}")
        return clean

    def _copy(self) -> None:
        for old in self._place.parent.glob(f"{self._place.name}*"):  # and what the shim kept aside
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copytree(self._beginning, self._place)

    def _act(self, tell: Tell, kind: str, nth: int) -> int:
        self._faults.arm(self._place, kind, nth)
        try:
            self._operation.act(str(self._place), tell)
            if nth == AFTER:
                self._faults.cut_power()
        finally:
            changes, where = self._faults.disarm()
            tell({"hit": where or (nth == AFTER and "after the end")})
        return changes

    def inject(self, kind: str, nth: int) -> tuple[bool, list[str]]:
        """Fail once; return whether the fault was met, and what was wrong after it."""
        self._copy()
        child = Child(lambda tell: self._act(tell, kind, nth)).wait()
        hit = child.told.pop()["hit"] if child.end is not None else "killed"
        if not hit:
            return False, []
        failures = look(self._operation, str(self._place), self.clean, child)
        return True, [f"{kind} at change {nth} ({hit}): {f.kind}: {f.text}" for f in failures]


def _spread(changes: int, sample: int | None, offset: float) -> Iterator[int]:
    """Every number from 1 on (the caller ends it), or some, spread over all changes."""
    if sample is None or changes <= FEW:
        yield from range(1, 10_000)
    else:
        yield from (1 + int(changes * (i + offset) / sample) for i in range(sample))


def main(part: int, parts: int, sample: int | None, only: str = "") -> None:
    """Print one line of JSON for each operation and kind, of every `parts`-th operation."""
    # In memory where possible: the shim stands in front of the disk, so no disk is needed.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="resight-faults-", dir=memory) as name:
        folder = Path(name)
        tempfile.tempdir = name  # for what is written aside on the way
        material = Material(folder / "material")
        every = [kind for kind in OPERATIONS if only in kind.name]
        chosen = [kind(material) for kind in every[part::parts]]
        for line in run(chosen, folder / "work", sample):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) or None, *sys.argv[4:])
