"""Run benchmarks and write docs/benchmarks.md: ``python -m benchmarks [SECTION ...]``.

Each section is written as soon as it is measured, so an interrupted run keeps what is finished.
``python -m benchmarks reliability`` and ``python -m benchmarks fuzz`` write docs/reliability.md.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks._pages import DOCS, made_by, put_section
from resight.errors import ResightError, unknown_name

SECTIONS = (
    "kxqda",
    "claims",
    "guard",
    "large",
    "landmarks",
    "market",
    "evaluate_large",
    "gram_space",
    "auto",
    "demo",
    "learners",
    "adding_people",
    "iterative",
    "descriptors",
    "describing",
    "extraction",
    "network",
    "kill_extract",
    "kill_cluster",
    "reranking",
    "gallery",
    "gallery_engines",
    "cluster_search",
    "access_log",
    "teaching",
    "grouping",
    "page",
    "page_uploads",
    "startup",
    "scaling",
    "alternatives",
)
PAGE = DOCS / "benchmarks.md"
TITLE = """# Benchmarks

Measured, never typed in: `make bench` writes this page, `python -m benchmarks SECTION` one section
of it. Compare ratios: they hold on other machines, seconds do not.
"""


def main(names: list[str]) -> int:
    """Measure the named sections, or all; return the exit code."""
    if names == ["reliability"]:  # a page of its own, and no timing: only by name
        from benchmarks.reliability.__main__ import main as reliability

        return reliability([])
    if names == ["fuzz"]:  # a section of that page
        from benchmarks.fuzz.__main__ import main as fuzz

        return fuzz([])
    for name in names:
        if name not in SECTIONS:
            raise unknown_name("section", name, SECTIONS)
    for name in names or SECTIONS:
        module = import_module(f"benchmarks.{name}")
        print(f"== {name}", flush=True)
        measured = module.run()
        print(measured, flush=True)
        heading = (module.__doc__ or name).splitlines()[0].rstrip(".")
        section = f"## {heading}\n\n{made_by(f' {name}')}\n\n{_as_markdown(measured)}\n"
        put_section(PAGE, TITLE, SECTIONS, name, section)
    return 0


def _as_markdown(measured: str) -> str:
    """Tables and sentences are Markdown already; aligned text is kept as it is."""
    lines = measured.splitlines()
    is_markdown = len(lines) == 1 or any(line.startswith("|") for line in lines)
    return measured if is_markdown else f"```text\n{measured}\n```"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ResightError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
