"""A gallery in SQLite against 0.1 in LanceDB: adding, rebuilding, searching, importing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks._gallery_work import FEATURES, SEARCHES
from benchmarks._old import OLD, ROOT, source_of_old

SIGHTINGS, ROUNDS = 640, 5
_IMPORT = """
import time, numpy, cv2
start = time.process_time()
import resight.gallery
print(time.process_time() - start)
"""


def run() -> str:
    """Measure both in turns and write a table of medians; raise above what is allowed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _draw(folder / "material")
        sources = {"0.1": source_of_old(folder / "old"), "now": ROOT / "src"}
        seconds: dict[str, dict[str, list[float]]] = {version: {} for version in sources}
        for number in range(ROUNDS):
            for version, source in sources.items():
                place = folder / f"{version}-{number}"
                for step, value in _round(source, folder / "material", place).items():
                    seconds[version].setdefault(step, []).append(value)
    return _table(seconds)


def _table(seconds: dict[str, dict[str, list[float]]]) -> str:
    lines = [
        f"{SIGHTINGS} sightings with images of 10 kB and descriptors of {FEATURES * 4 // 1000} kB, "
        f"{SEARCHES} searches; medians of {ROUNDS} rounds taken in turns. 0.1 is commit {OLD}, run "
        "by the same Python environment, which has LanceDB.",
        "",
        "| step | 0.1, LanceDB | now, SQLite | ratio | at most |",
        "|---|---|---|---|---|",
    ]
    slow = []
    for step in seconds["now"]:
        old, new = (float(np.median(seconds[version][step])) for version in ("0.1", "now"))
        limit = "0.3 s" if step.startswith("importing") else "1.1"
        lines.append(f"| {step} | {old:.2f} s | {new:.2f} s | {new / old:.2f} | {limit} |")
        if (new > 0.3) if limit == "0.3 s" else (new / old > 1.1):
            slow.append(step)
    if slow:
        lines += ["", f"Above what is allowed: {', '.join(slow)}."]
    return "\n".join(lines)


def _draw(folder: Path) -> None:
    """Write pictures of about 10 kB and random descriptors."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(SIGHTINGS):
        pixels = rng.integers(0, 256, (128, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05d}.jpg", quality=80)
    np.save(folder / "features.npy", rng.random((SIGHTINGS, FEATURES), dtype=np.float32))


def _round(source: Path, material: Path, place: Path) -> dict[str, float]:
    work = Path(__file__).with_name("_gallery_work.py")
    measured: dict[str, float] = json.loads(_python(source, str(work), str(material), str(place)))
    name = "importing `resight.gallery` (processor, beyond NumPy and OpenCV)"
    return {**measured, name: float(_python(source, "-c", _IMPORT))}


def _python(source: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-W", "ignore", *words]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    print(run())
