"""A reduced form of ``python -m benchmarks reliability``, and a test of that bench itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None,
    reason="faults are injected by LD_PRELOAD, on Linux, with a shim that a C compiler builds",
)


def python(*words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_faults_lose_damage_and_leave_nothing() -> None:
    """Each kind of fault in every change of a gallery and a feature store; all of a model's."""
    said = python("-m", "benchmarks.reliability", "--reduced", "faults")
    counted = re.search(r"(\d+) faults injected, 0 failures", said)
    assert counted, said
    assert int(counted[1]) > 150


CARELESS = """
import json, os, sys
from pathlib import Path
from benchmarks.reliability.injection import run
from benchmarks.reliability.operations import Operation

class InPlace(Operation):
    name = "in place"
    def prepare(self, place):
        Path(place, "file").write_text("old " * 5000)
    def act(self, place, tell):
        Path(place, "file").write_text("new " * 5000)
    def state(self, place):
        return {"text": Path(place, "file").read_text()}

class NotFlushed(InPlace):
    name = "not flushed"
    def act(self, place, tell):
        Path(place, "part").write_text("new " * 5000)
        os.replace(Path(place, "part"), Path(place, "file"))

for line in run([InPlace(None), NotFlushed(None)], Path(sys.argv[1]), None):
    print(json.dumps(line))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    source = ROOT / "benchmarks" / "reliability" / "failing_io.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return str(made)


def test_careless_writing_is_noticed(tmp_path: Path, shim: str) -> None:
    """What the bench is for: a file written in place, and one renamed before it was flushed."""
    said = python("-c", CARELESS, str(tmp_path / "work"), LD_PRELOAD=shim)
    lines = [json.loads(line) for line in said.splitlines()]
    assert all(line["points"] >= 2 for line in lines)
    noticed = {(line["operation"], line["kind"]) for line in lines if line["failed"]}
    kinds = ("full disk", "I/O error", "killed", "power cut")
    assert noticed == {*(("in place", kind) for kind in kinds), ("not flushed", "power cut")}


CREATING = """
import sys
from pathlib import Path
from benchmarks.reliability.galleries import Create
from benchmarks.reliability.injection import Bench
from benchmarks.reliability.material import Material

folder = Path(sys.argv[1])
bench = Bench(Create(Material(folder / "material")), folder / "work")
for number in range(1, 13):
    print(bench.inject("I/O error", number))
"""


def test_a_gallery_is_made_in_the_right_mode_or_not_at_all(tmp_path: Path, shim: str) -> None:
    """SQLite says nothing if a failing disk keeps it from switching to its write-ahead log."""
    said = python("-c", CREATING, str(tmp_path), LD_PRELOAD=shim)
    assert said.splitlines() == ["(True, [])"] * 12
