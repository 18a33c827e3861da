"""Memory of a server that searches again and again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

import psutil

from benchmarks.reliability import Outcome, Scale
from benchmarks.reliability.galleries import GalleryOperation, uri
from benchmarks.reliability.material import Material
from resight.gallery import Gallery


class _Filled(GalleryOperation):
    """A gallery of everybody."""

    def act(self, place: str, tell: object) -> None:
        """Do nothing."""


TEXT = """## Memory of a server

`resight serve` in a process of its own; one search after the other over HTTP, each of them logged.
"""
_ALLOWED = 0.05


def measure(scale: Scale) -> Outcome:
    """Compare the memory early and late, and write the table."""
    early, late = scale.searches
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        first, last = _serve(Material(work / "material"), work, early, late)
    growth = last / first - 1
    rows = [
        "| searches | memory |",
        "|---|---|",
        f"| {early:,} | {first:.1f} MB |",
        f"| {late:,} | {last:.1f} MB ({100 * growth:+.1f}%, at most {100 * _ALLOWED:+.0f}%) |",
    ]
    failures = [f"memory grew by {100 * growth:.1f}%"] if growth > _ALLOWED else []
    return Outcome(TEXT + "\n" + "\n".join(rows), failures)


def _serve(material: Material, work: Path, early: int, late: int) -> tuple[float, float]:
    """Start ``resight serve`` and search; return its megabytes after so many searches."""
    _Filled(material).prepare(str(work))
    gallery = Gallery.open(uri(str(work)))
    ids = gallery.view.table.ids.tolist()
    gallery.close()
    serve = ("serve", uri(str(work)), "--no-browser", "--no-login")
    command = [sys.executable, "-m", "resight", *serve]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        address = _address(process)
        megabytes = {}
        for number in range(1, late + 1):
            with urlopen(f"{address}search.json?like={ids[number % len(ids)]}") as answer:
                answer.read()
            if number in (early, late):
                megabytes[number] = psutil.Process(process.pid).memory_info().rss / 1e6
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    return megabytes[early], megabytes[late]


def _address(process: subprocess.Popen[str]) -> str:
    lines = []
    for line in process.stderr or ():
        lines.append(line)
        found = re.search(r"http://\S+/", line)
        if found:
            return found[0]
    raise RuntimeError(f"the server did not start: {''.join(lines)}")
