"""What tests in a real Chromium share: the real command, serving, and a browser."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parent / "web" / "vendor" / "axe.min.js"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def start(folder: Path, *options: str, login: bool = False) -> tuple[subprocess.Popen[str], str]:
    """Run ``resight serve`` and return its process and address."""
    command = [sys.executable, "-m", "resight", "serve", str(folder), "--no-browser", *options]
    command += [] if login else ["--no-login"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"http://\S+", line)
        if found:
            return process, found[0]
    raise AssertionError("the server ended without telling its address")


def stop(process: subprocess.Popen[str], how: int = signal.SIGINT) -> int:
    process.send_signal(how)
    code = process.wait(30)
    assert process.stderr is not None
    process.stderr.close()
    return code
