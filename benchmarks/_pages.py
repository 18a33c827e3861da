"""Pages of documentation made of sections that are measured one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import description
from resight._files import atomic_write

DOCS = Path(__file__).resolve().parents[1] / "docs"


def made_by(words: str) -> str:
    """Name the command that measured a section, and the machine."""
    return f"`OMP_NUM_THREADS=1 python -m benchmarks{words}` ({description()})"


def put_section(page: Path, title: str, order: Sequence[str], name: str, section: str) -> None:
    """Put a section into a page, leaving the others as they are, in their order."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", text, flags=re.DOTALL)
    sections = {**dict(found), name: section}
    with atomic_write(page, "w") as stream:
        stream.write(title)
        for known in order:
            if known in sections:
                stream.write(f"\n<!-- {known} -->\n{sections[known].strip()}\n")
