"""Write docs/reliability.md: ``python -m benchmarks.reliability [SECTION ...]``.

A section is written as soon as it is measured, so an interrupted run keeps what is finished, and
one section can be measured alone. Exit code 1 means that something failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from importlib import import_module

from benchmarks._pages import DOCS, made_by, put_section
from benchmarks.reliability import FULL, REDUCED
from resight.errors import unknown_name

SECTIONS = ("faults", "kills", "soak", "memory")
ORDER = (*SECTIONS, "fuzz")  # on the page; the last is measured by benchmarks.fuzz
PAGE = DOCS / "reliability.md"
TITLE = """# Reliability

What was tried to lose, damage or leave behind something, and what came of it. Nothing on this page
is typed in: `python -m benchmarks reliability` writes it (about 25 minutes on two cores) except for
the bad input, which `python -m benchmarks fuzz` tries (10 minutes); `make test` runs a reduced form
of the faults and of the bad input. Its sections are faults of the disk, kills, load, the memory of
a server and bad input; one that is not below has not been measured on the code as it is.

What is promised: what was acknowledged is there after any interruption; an interrupted operation is
either not there or whole, and the same command finishes it; nothing that was erased is found again.
"""


def main(words: list[str]) -> int:
    """Measure the named sections, or all; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--reduced", action="store_true", help="a little of it; writes no page")
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="of load; writes no page")
    given = parser.parse_args(words)
    for name in given.sections:
        if name not in SECTIONS:
            raise unknown_name("section", name, SECTIONS)
    scale = REDUCED if given.reduced else FULL
    scale = replace(scale, soak=given.soak or scale.soak)
    failed = 0
    for name in given.sections or SECTIONS:
        module = import_module(f"benchmarks.reliability.{name}")
        start = time.monotonic()
        print(f"== {name}", flush=True)
        outcome = module.measure(scale)
        print(outcome.section, *outcome.failures, sep="\n", flush=True)
        print(f"({time.monotonic() - start:.0f} s)", flush=True)
        failed += len(outcome.failures)
        if scale == FULL:
            section = f"{outcome.section}\n\n{made_by(f'.reliability {name}')}\n"
            put_section(PAGE, TITLE, ORDER, name, section)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
