"""A reduced form of ``python -m benchmarks fuzz``, and a test of that bench itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="cases run in forks, with limits that Linux knows"
)
ROOT = Path(__file__).parents[1]


def test_bad_input_is_refused_in_words() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fuzz", "--reduced"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = re.findall(r"^\| [a-zP][\w ]+ \| (\d+) \| (\d+) \| 0 \| 0 \| 0 \|$", done.stdout, re.M)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) == 4, done.stdout
    assert all(tried == refused and int(tried) >= 20 for tried, refused in rows)


JUDGED = """
import time
from benchmarks.fuzz import Case, Verdict, running
from resight.errors import InputError

running.SECONDS = 0.5
def wrong():
    raise KeyError("x")
def bad():
    raise InputError("bad; do this")
cases = {
    "refused": lambda: running.run_call(bad, ()),
    "wrong type": lambda: running.run_call(wrong, ()),
    "accepted": lambda: running.run_call(lambda: 1, ()),
    "hang": lambda: time.sleep(9),
    "memory": lambda: Verdict("accepted", str(len(bytearray(2**33)))),
    "died": lambda: __import__("os").abort(),
    "line": lambda: running.run_line(["nonsense"]),
    "good line": lambda: running.run_line(["--version"]),
}
for name, work in cases.items():
    print(name, running.run_case(Case("", name, work)).ending, sep=": ")
"""


def test_the_bench_tells_refusals_from_the_rest() -> None:
    done = subprocess.run(
        [sys.executable, "-c", JUDGED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "refused: refused",
        "wrong type: traceback",
        "accepted: accepted",
        "hang: hang",
        "memory: traceback",
        "died: traceback",
        "line: refused",
        "good line: accepted",
    ]
