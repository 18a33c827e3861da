"""README and docs say what is true: code runs, links lead somewhere, help pages are current."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_code_in_the_readme_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert 0.5 < float(done.stdout) <= 1.0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("file", "written_by"),
    [("COMMANDS", "command_page"), ("GUIDE", "guide"), ("STUB", "type_stub")],
)
def test_what_is_written_from_the_code_is_current(file, written_by):
    docs = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
    assert docs[written_by]() == docs[file].read_text("utf-8"), "run `make docs`"


def test_every_verb_in_the_readme_exists():
    from resight.cli import VERBS

    for verb in re.findall(r"^\$ resight (\w+)", (ROOT / "README.md").read_text(), re.M):
        assert verb in VERBS
