"""``resight doctor``: what it finds, and that compiling ahead is compiling once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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
    assert "warming up gog" in streams.err


def test_a_missing_package_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "NEEDED", ("numba", "no-such-package"))
    assert main(["doctor"]) == 1
    assert "no-such-package: MISSING" in capsys.readouterr().out


def test_unknown_options_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--warmup"]) == 2
    assert "--warm-up" in capsys.readouterr().err


def _describe_in_new_process(environment: dict[str, str]) -> tuple[str, float]:
    program = (
        "import numpy as np; from resight.descriptors import whos; "
        "print(whos(np.zeros((128, 64, 3), np.uint8), variant='star').shape)"
    )
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(2960,)\n"
    return done.stderr, time.perf_counter() - begin


def test_compiles_once_and_tells_so(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, slow = _describe_in_new_process(environment)
    assert first.count("resight: compiling") == 1
    second, fast = _describe_in_new_process(environment)
    assert second == ""
    assert fast < slow


def test_works_where_nothing_can_be_written() -> None:
    """No cache at all: every process compiles, and describes all the same."""
    environment = os.environ | {"NUMBA_CACHE_DIR": os.devnull + "/nowhere"}
    message, _ = _describe_in_new_process(environment)
    assert "resight: compiling" in message


def test_a_home_that_cannot_be_written_falls_back(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment |= {"HOME": os.devnull, "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    _describe_in_new_process(environment)
    assert list(tmp_path.glob("resight-compiled-*/*/*"))
    assert _describe_in_new_process(environment)[0] == ""
