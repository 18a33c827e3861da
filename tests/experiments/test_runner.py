"""Evaluations that are killed or interrupted go on with the splits that they lack."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from resight.cli import main
from resight.experiments import runner
from resight.experiments.runner import FinishedSplits, over_splits
from resight.protocols import Split

# Runs the command line; the process sends itself a signal once so many splits are finished.
STOPPING = """
import os, sys
from resight.cli import main
from resight.experiments import runner

number, left = int(sys.argv[1]), int(sys.argv[2])
write = runner.write_json

def stopping(path, document):
    global left
    write(path, document)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), number)

runner.write_json = stopping
sys.exit(main(sys.argv[3:]))
"""


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(3)
    codes = np.tile(np.arange(44), 2)
    X = rng.normal(size=(44, 12))[codes] + 0.5 * rng.normal(size=(88, 12))
    rows = [f"p{code},{'AB'[i // 44]}" for i, code in enumerate(codes)]
    np.save(folder / "own.npy", X)
    (folder / "own.csv").write_text("\n".join(["person,camera", *rows]))
    return folder / "own.npy"


def evaluated(vectors, folder, *more):
    words = ["evaluate", "--features", str(vectors), "--jobs", "1", *more]
    return [*words, "--store", str(folder / "store"), "--out", str(folder / "out")]


def stopped(number, after, words):
    process = [sys.executable, "-c", STOPPING, str(int(number)), str(after), *words]
    return subprocess.run(process, capture_output=True, text=True, timeout=300)


@pytest.fixture
def measured(monkeypatch):
    """Counts the splits that are measured in this process."""
    numbers = []
    write = runner.write_json

    def counting(path, document):
        numbers.append(path.name)
        write(path, document)

    monkeypatch.setattr(runner, "write_json", counting)
    return numbers


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(part) for name, part in value.items() if name != "fit_s"}
    return [without_times(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("more", "after", "total"),
    [
        (["--learner", "kxqda,euclidean", "--rerank", "cross-view"], 3, 10),
        (["--learner", "kxqda", "--param", "kxqda.landmarks=20"], 4, 10),
        (["--learner", "kxqda", "--curve", "--people", "5,22"], 13, 20),
        (["--learner", "kxqda", "--calibrate"], 12, 20),
    ],
    ids=["evaluate", "out of core", "curve", "calibrate"],
)
def test_a_killed_evaluation_measures_only_the_missing_splits(
    vectors, tmp_path, measured, more, after, total
):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(evaluated(vectors, whole, *more)) == 0
    assert len(measured) == total
    measured.clear()
    words = evaluated(vectors, killed, *more)
    assert stopped(signal.SIGKILL, after, words).returncode == -signal.SIGKILL
    assert len(list((killed / "store" / "splits").glob("*/*.json"))) == after
    assert not (killed / "out").exists()
    assert main(words) == 0
    assert len(measured) == total - after
    assert not (killed / "store").exists()  # own vectors: nothing else was kept there
    for name in ("result.json", "rankings.csv"):
        first, second = ((folder / "out" / name).read_text() for folder in (whole, killed))
        if name == "result.json":
            first, second = (without_times(json.loads(text)) for text in (first, second))
        assert first == second


def test_ctrl_c_keeps_what_it_says(vectors, tmp_path, measured):
    words = evaluated(vectors, tmp_path)
    told = stopped(signal.SIGINT, 2, words)
    assert told.returncode == 130
    assert told.stderr.startswith("interrupted")
    assert "Traceback" not in told.stderr
    assert main(words) == 0
    assert len(measured) == 8


def test_another_setting_does_not_take_over_splits(vectors, tmp_path, measured):
    words = evaluated(vectors, tmp_path, "--learner", "kxqda")
    stopped(signal.SIGKILL, 4, words)
    assert main([*words, "--param", "reg=1e-3"]) == 0
    assert len(measured) == 10
    assert len(list((tmp_path / "store" / "splits").glob("*/*.json"))) == 4  # for the other one


def test_splits_come_in_order_from_disk_and_processes(tmp_path):
    folder, splits = tmp_path / "kept", [Split([i], [10], [20]) for i in range(4)]
    assert over_splits(lambda split: [int(split.train[0]), 0.1], splits[:2], folder) == [
        [0, 0.1],
        [1, 0.1],
    ]
    (folder / "1.json").write_text("{")  # damaged: measured again
    again = over_splits(lambda split: [int(split.train[0]), 0.2], splits, folder, n_jobs=2)
    assert again == [[0, 0.1], [1, 0.2], [2, 0.2], [3, 0.2]]
    assert over_splits(lambda split: {"of": 3}, splits[:1]) == [{"of": 3}]


def test_only_own_splits_are_removed(tmp_path):
    first, second = FinishedSplits(tmp_path), FinishedSplits(tmp_path)
    for finished, name in ((first, "a"), (second, "b")):
        over_splits(lambda split: 1, [Split([0], [1], [2])], finished.folder(name))
    first.remove()
    assert [file.name for file in tmp_path.glob("splits/*/*")] == ["0.json"]
    second.remove()
    assert not (tmp_path / "splits").exists()
