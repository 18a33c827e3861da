"""Try everything, or a reduced form of it: ``python -m benchmarks.fuzz [--reduced]``.

In full it writes its counts into docs/reliability.md. Exit code 1 means that something failed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.fuzz import (
    ENDINGS,
    Case,
    Verdict,
    calls,
    files,
    lines,
    material,
    requests,
    subprocesses,
)
from benchmarks.fuzz.running import run_case
from resight.cli import VERBS

EVERY = {"command lines": 40, "forged files": 9, "calls of the Python API": 6, "web requests": 4}
"""How many cases the reduced form leaves out between two."""
_LATER = (
    *("gallery.forgetting", "web.serving", "models.fitting", "report"),
    *("experiments.evaluate", "features.vectors", "explanation.drawing", "datasets.video"),
    *("protocols.files", "reproduce.measuring"),
)
TEXT = """## Bad input

Command lines with one bad value each: every option of every verb, with the values that its kind
must refuse. Forged files: models with right digests and wrong contents, images of other formats,
arrays, tables, splits, settings, results and backups. Calls of the Python API. Requests to a
running server. Each case runs in a process of its own with a limit of {seconds:g} s and
{memory:g} GB (requests: {timeout:g} s), and has to be refused in words.

| bad input | tried | refused | tracebacks | hangs | accepted |
|---|---|---|---|---|---|
{rows}

A traceback is also an error of a type that is not promised, or a status of 500 and above.
"""


def main(words: Sequence[str]) -> int:
    """Try all cases; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz")
    parser.add_argument("--reduced", action="store_true", help="a little of it; writes no page")
    reduced = parser.parse_args(words).reduced
    start = time.monotonic()
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in EVERY}

    def note(case: Case, verdict: Verdict) -> None:
        counts[case.kind][verdict.ending] += 1
        if verdict.ending != "refused":
            print(f"{verdict.ending}: {case.name}\n    {verdict.words}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        made = material.make(Path(folder))
        _import_everything()
        for case in _in_forks(made, reduced):
            note(case, run_case(case))
        with requests.server(made, Path(folder) / "served") as client:
            for case in requests.cases(client, EVERY["web requests"] if reduced else 1):
                note(case, case.work())
    section = _section(counts)
    print(section, f"({time.monotonic() - start:.0f} s)", sep="\n", flush=True)
    if not reduced:
        from benchmarks._pages import made_by, put_section
        from benchmarks.reliability.__main__ import ORDER, PAGE, TITLE

        put_section(PAGE, TITLE, ORDER, "fuzz", f"{section}\n{made_by(' fuzz')}\n")
    return int(any(found.total() != found["refused"] for found in counts.values()))


def _in_forks(made: material.Material, reduced: bool) -> list[Case]:
    parts = (lines.cases(made), files.cases(made), calls.cases(made))
    chosen = [part[:: EVERY[part[0].kind] if reduced else 1] for part in parts]
    # Reading 0.1's galleries takes seconds to import; as processes, most take longer to start.
    light = [case for part in chosen for case in part if not (reduced and "convert" in case.name)]
    return light + subprocesses.cases(made)[: 3 if reduced else None : 2 if reduced else 1]


def _import_everything() -> None:
    """Import what verbs import when they run: once, before the forks."""
    for verb in VERBS:
        import_module(f"resight.cli.{verb}")
    for name in _LATER:
        import_module(f"resight.{name}")
    gc.freeze()  # forks share these pages as long as nobody counts their references


def _section(counts: dict[str, Counter[str]]) -> str:
    from benchmarks.fuzz.running import MEMORY, SECONDS

    rows = [
        f"| {kind} | {sum(found.values()):,} | {' | '.join(str(found[e]) for e in ENDINGS)} |"
        for kind, found in counts.items()
    ]
    values = {"seconds": SECONDS, "memory": MEMORY / 2**30, "timeout": requests.TIMEOUT}
    return TEXT.format(rows="\n".join(rows), **values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
