"""Resight 0.1, to be measured beside today's.

It is the archive of its last commit, run by the same Python with that archive on PYTHONPATH: the
development environment has all that 0.1 needs, LanceDB included (to convert its galleries).
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLD = "36b9acc"  # the last commit of 0.1


def source_of_old(folder: Path) -> Path:
    """Unpack the source of 0.1 and return what goes on PYTHONPATH."""
    command = ["git", "archive", OLD, "src"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"
