"""A reduced form of ``python -m benchmarks page_uploads``: the real server, killed while adding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_uploads_survive_a_killed_server() -> None:
    """A video and 128 images; killed in the middle of each: nothing twice, nothing lost."""
    words = [sys.executable, "-m", "benchmarks.page_uploads", "--reduced"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 128\n" in done.stdout
    assert "138 sightings, 138 expected" in done.stdout
    assert done.stdout.endswith("problems: none\n")
