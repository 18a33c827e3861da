"""``resight doctor``: what it finds, and that compiling ahead is compiling once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from resight.cli import doctor, main
from resight.descriptors import DESCRIPTORS


def test_tells_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for word in ("resight", "cores", "numba", "compiled code", "extra gallery"):
        assert word in text


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--warm-up", "--json"]) == 0
    streams = capsys.readouterr()
    document = json.loads(streams.out)
    assert document["schema"] == "resight.doctor/1"
    assert document["missing"] == []
    assert list(document["warm_up_seconds"]) == list(DESCRIPTORS)
    assert "compiling gog" in streams.err


def test_a_missing_package_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("numba", "no-such-package"))
    assert main(["doctor"]) == 1
    assert "no-such-package: MISSING" in capsys.readouterr().out


def test_unknown_options_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--warmup"]) == 2
    assert "--warm-up" in capsys.readouterr().err


def _resize_in_new_process(environment: dict[str, str]) -> str:
    """Run the smallest of the kernels in a process of its own: what it tells."""
    program = (
        "import numpy as np; from resight.images.arrays import resize; "
        "print(resize(np.zeros((9, 9, 3), np.uint8), 5, 5).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(5, 5, 3)\n"
    return done.stderr


def test_compiles_once_and_tells_so(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert _resize_in_new_process(environment).count("resight: compiling") == 1
    assert _resize_in_new_process(environment) == ""


def test_works_where_nothing_can_be_written() -> None:
    """No cache at all: every process compiles, and works all the same."""
    environment = os.environ | {"NUMBA_CACHE_DIR": os.devnull + "/nowhere"}
    assert "resight: compiling" in _resize_in_new_process(environment)


def test_a_home_that_cannot_be_written_falls_back(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"HOME": os.devnull, "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    _resize_in_new_process(environment)
    assert list(tmp_path.glob("resight-compiled-*/*/*"))
    assert _resize_in_new_process(environment) == ""
