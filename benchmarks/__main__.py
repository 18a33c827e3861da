"""Run benchmarks and write docs/benchmarks.md: ``python -m benchmarks [SECTION ...]``.

Each section is written as soon as it is measured, so an interrupted run keeps what is finished.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.machine import description
from resight._files import atomic_write
from resight.errors import ResightError, unknown_name

SECTIONS = (
    "kxqda",
    "claims",
    "large",
    "landmarks",
    "market",
    "gram_space",
    "auto",
    "learners",
    "iterative",
    "descriptors",
    "describing",
    "extraction",
    "kill_extract",
    "kill_cluster",
    "reranking",
    "gallery",
    "teaching",
    "scaling",
)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
TITLE = """# Benchmarks

Measured, never typed in: `make bench` writes this page, `python -m benchmarks SECTION` one section
of it. Compare ratios: they hold on other machines, seconds do not.
"""


def main(names: list[str]) -> int:
    """Measure the named sections, or all; return the exit code."""
    for name in names:
        if name not in SECTIONS:
            raise unknown_name("section", name, SECTIONS)
    for name in names or SECTIONS:
        module = import_module(f"benchmarks.{name}")
        print(f"== {name}", flush=True)
        measured = module.run()
        print(measured, flush=True)
        heading = (module.__doc__ or name).splitlines()[0].rstrip(".")
        _write(name, f"## {heading}\n\n{_made_by(name)}\n\n{_as_markdown(measured)}\n")
    return 0


def _made_by(name: str) -> str:
    return f"`OMP_NUM_THREADS=1 python -m benchmarks {name}` ({description()})"


def _as_markdown(measured: str) -> str:
    """Tables and sentences are Markdown already; aligned text is kept as it is."""
    lines = measured.splitlines()
    is_markdown = len(lines) == 1 or any(line.startswith("|") for line in lines)
    return measured if is_markdown else f"```text\n{measured}\n```"


def _write(name: str, section: str) -> None:
    """Put a section into the page, leaving the others as they are, in the order of `SECTIONS`."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", page, flags=re.DOTALL)
    sections = {**dict(found), name: section}
    with atomic_write(PAGE, "w") as stream:
        stream.write(TITLE)
        for known in SECTIONS:
            if known in sections:
                stream.write(f"\n<!-- {known} -->\n{sections[known].strip()}\n")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ResightError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
