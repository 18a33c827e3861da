"""Memory does not grow with the number of images that are described."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

if not Path("/proc/self/status").exists():
    pytest.skip(
        "the kernel here does not tell a process its peak of memory", allow_module_level=True
    )

# VmHWM, not ru_maxrss: the latter begins at what the parent held when it started this process.
PROGRAM = """
import sys
from resight.descriptors import descriptor
from resight.descriptors.describing import stream

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))

lomo, paths = descriptor("lomo-dagger"), sys.argv[1:]
for _ in stream(lomo, paths * 20):  # 200 images: threads, caches and buffers are there
    pass
before = peak()
rows = sum(len(chunk.kept) for chunk in stream(lomo, paths * 300))
print(rows, before, peak())
"""


def test_three_thousand_paths_need_no_more_than_two_hundred(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    paths = [str(tmp_path / f"{i}.png") for i in range(10)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (128, 48, 3), np.uint8)).save(path)
    command = [sys.executable, "-c", PROGRAM, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, before, after = map(float, done.stdout.split())
    assert rows == 3000  # their features are 324 MB
    assert after < before + 60
    assert after < 1000
