"""Run every example (`make examples`), or those named, and say how long each took.

Warnings are errors. Pictures are drawn and thrown away; `make docs` puts them on the site.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "examples"
LIMIT = 120  # seconds; each should take less than 30 where nothing else runs


def main(names: list[str]) -> int:
    """Run them one after the other; return how many failed."""
    environment = os.environ | {"MPLBACKEND": "Agg"}
    failed = 0
    for file in sorted(FOLDER.glob("[0-9]*.py")):
        if names and not any(file.name.startswith(name) for name in names):
            continue
        start = time.perf_counter()
        command = [sys.executable, "-W", "error", str(file)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
        failed += done.returncode != 0
        said = "ok" if done.returncode == 0 else f"FAILED\n{done.stderr}"
        print(f"{file.name}: {time.perf_counter() - start:.0f} s, {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
