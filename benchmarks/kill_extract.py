"""Kill ``resight extract`` again and again: nothing finished is done twice, no byte differs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from resight.datasets.synthetic import draw_cameras
from resight.features._tables import read_chunk

PEOPLE, KILLS, SEED = 500, 10, 0  # two cameras: 1,000 images
DESCRIPTOR = "gog"


def run() -> str:
    """Kill at random moments, last while the table is completed; then finish and compare."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_cameras(folder / "images", PEOPLE, 2)
        whole = json.loads(_start(folder, "whole").communicate()[0])
        lines = [f"resight extract, {DESCRIPTOR}, {whole['dataset']['sightings']} images"]
        rng = random.Random(SEED)
        written: dict[str, int] = {}
        for kill in range(1, KILLS + 1):
            process = _start(folder, "killed")
            if kill < KILLS:
                _wait(folder / "killed", rng)
            else:
                _wait_for_rows(folder / "killed", whole["computed"])
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            lines.append(f"  kill {kill:>2}: {_note_chunks(folder / 'killed', written):>5} rows")
        there = _rows(folder / "killed")
        end = json.loads(_start(folder, "killed").communicate()[0])
        same = _tree(folder / "whole") == _tree(folder / "killed")
    lines += [
        f"  the last run found {there} rows and computed {end['computed']}; missing were "
        f"{whole['computed'] - there}",
        f"  the store is byte-equal to the uninterrupted one: {same}",
    ]
    if not same or end["computed"] != whole["computed"] - there:
        raise RuntimeError("\n".join(lines))
    return "\n".join(lines)


def _start(folder: Path, store: str) -> subprocess.Popen[str]:
    words = ["extract", str(folder / "images"), "--store", str(folder / store), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "resight", *words, "--descriptor", DESCRIPTOR, "--jobs", "2"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait(store: Path, rng: random.Random) -> None:
    """Wait for up to two more chunks and a moment."""
    aim = len(list(store.rglob("*.chunk"))) + rng.randint(0, 2)
    while len(list(store.rglob("*.chunk"))) < aim:
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, 0.5))


def _wait_for_rows(store: Path, count: int) -> None:
    """Wait until the last row is there: then its table is being completed."""
    while _rows(store) < count:
        time.sleep(0.001)


def _note_chunks(store: Path, written: dict[str, int]) -> int:
    """Count finished rows; a chunk that is written again would have another time."""
    for path in store.rglob("*.chunk"):
        stamp = path.stat().st_mtime_ns
        if written.setdefault(path.name, stamp) != stamp:
            raise RuntimeError(f"{path.name} was finished and yet written again")
    return _rows(store)


def _rows(store: Path) -> int:
    """Count rows that are in chunks or, once it is complete, in the table."""
    found: set[str] = set()
    for path in store.rglob("*.chunk"):
        with suppress(FileNotFoundError):
            found.update(read_chunk(path)[0])
    for path in store.glob("*/*.json"):
        found.update(json.loads(path.read_text("utf-8"))["keys"])
    return len(found)


def _tree(store: Path) -> dict[str, bytes]:
    files = (path for path in sorted(store.rglob("*")) if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


if __name__ == "__main__":
    print(run())
