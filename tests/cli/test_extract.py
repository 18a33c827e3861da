"""``resight extract``: what it prints, what it exits with, what it keeps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.cli import main


@pytest.fixture
def images(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for camera in ("a", "b"):
        for person in range(3):
            folder = tmp_path / "images" / camera / str(person)
            folder.mkdir(parents=True)
            pixels = rng.integers(0, 256, (128, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "0.png")
    return tmp_path / "images"


def extract(images: Path, *options: str) -> int:
    out = str(images.parent / "store")
    words = [str(images), "--store", out, "--descriptor", "whos-star", "--jobs", "1"]
    return main(["extract", *words, *options])


def test_extracts_then_finds_everything_there(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extract(images) == 0
    assert "6 of 6 sightings have whos-star" in capsys.readouterr().out
    assert extract(images, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "resight.extract/1"
    assert document["computed"] == 0
    assert document["descriptors"] == [{"name": "whos-star", "n_features": 2960}]
    assert document["dataset"]["sightings"] == 6


def test_the_old_name_of_the_store_works_and_is_hidden(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extract(images)
    old = ["extract", str(images), "--out", str(images.parent / "store"), "--json"]
    assert main([*old, "--descriptor", "whos-star", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["computed"] == 0
    assert main(["extract", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--store" in shown
    assert "--out" not in shown


def test_mirror_is_another_vector(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract(images) == extract(images, "--mirror", "--json") == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.index("{") :])["computed"] == 6
    tables = [np.load(path) for path in (images.parent / "store").rglob("*.npy")]
    assert len(tables) == 2
    assert not np.array_equal(*tables)


def test_bad_files_are_listed_and_the_exit_code_says_so(
    images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (images / "a/1/0.png").write_bytes(b"")
    (images / "b/2/0.png").write_bytes(b"text")
    assert extract(images, "--json") == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [Path(one["path"]).parts[-3:-1] for one in document["failures"]] == [
        ("a", "1"),
        ("b", "2"),
    ]
    assert "0 bytes" in captured.err
    assert "not an image" in captured.err
    assert document["computed"] == 4
    assert extract(images) == 1  # still: they are neither forgotten nor hidden
    assert "4 of 6 sightings" in capsys.readouterr().out


def test_a_changed_image_is_announced(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extract(images)
    Image.fromarray(np.zeros((128, 64, 3), np.uint8)).save(images / "a/1/0.png")
    assert extract(images) == 0
    assert "recomputed 1 image that changed since stored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--descriptor", "whos-stat"], 1, "did you mean 'whos-star'"),
        (["--send-files"], 2, "--send-files needs --cluster"),
        (["--cluster", "tcp://host:8786"], 2, "not both"),
        (["--jobs", "0"], 2, "--jobs"),
        (["--depth", "3"], 2, "--depth"),
    ],
)
def test_wrong_usage(
    images: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, text: str
) -> None:
    assert extract(images, *options) == code
    captured = capsys.readouterr()
    assert text in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("cluster", "text"),
    [("host:8786", "expected tcp://HOST:PORT"), ("tcp://127.0.0.1:9", "no Dask scheduler answers")],
)
def test_a_cluster_that_is_none(
    images: Path, capsys: pytest.CaptureFixture[str], cluster: str, text: str
) -> None:
    pytest.importorskip("distributed")
    out = str(images.parent / "store")
    assert main(["extract", str(images), "--store", out, "--cluster", cluster]) == 1
    assert text in capsys.readouterr().err


def test_a_store_that_is_a_file(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (images.parent / "store").touch()
    assert extract(images) == 1
    assert "is a file" in capsys.readouterr().err


def test_interrupt_says_that_nothing_is_lost(images: Path) -> None:
    for person in range(100):
        target = images / "a" / f"more{person}"
        target.mkdir()
        pixels = np.full((128, 64, 3), person, np.uint8)
        Image.fromarray(pixels).save(target / "0.png")
    store = images.parent / "store"
    command = [sys.executable, "-m", "resight", "extract", images, "--store", store]
    run = subprocess.Popen(
        [*command, "--descriptor", "whos-star"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(store.rglob("*.chunk")):
        time.sleep(0.01)
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    errors = run.communicate(timeout=30)[1]
    assert run.returncode == 130
    assert errors == "interrupted; run the same command again to resume\n"
