"""A learner, a descriptor and a dataset (`toys`) need nothing but their file and one line each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import resight
import toys
from resight import datasets, descriptors
from resight.cli import main
from resight.registry import LEARNERS

HERE = Path(__file__).parent
FLOW = ["--root", "data", "--descriptor", "mean-colour", "--learner", "within-scale"]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    toys.register()
    yield
    del LEARNERS["within-scale"], descriptors.DESCRIPTORS["mean-colour"], datasets.DATASETS["yard"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the images of the dataset: 12 people, each of a colour, by two cameras."""
    rng = np.random.default_rng(0)
    (tmp_path / "data" / "yard-images").mkdir(parents=True)
    colours = rng.integers(0, 256, size=(12, 4, 1, 3))
    for camera in (1, 2):
        for person, strips in enumerate(colours):
            image = np.repeat(np.repeat(strips, 8, axis=0), 16, axis=1)
            noisy = np.clip(image + rng.normal(0, 20, size=image.shape), 0, 255).astype(np.uint8)
            name = f"cam{camera}_{person:04d}.png"
            Image.fromarray(noisy).save(tmp_path / "data" / "yard-images" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_exported() -> None:
    assert resight.WithinScale is toys.WithinScale
    assert descriptors.MeanColour is toys.MeanColour
    assert descriptors.descriptor("mean-colour", mirror=True).mirror


def test_the_command_line_knows_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--json"]) == 0
    assert "yard" in [one["name"] for one in json.loads(capsys.readouterr().out)["datasets"]]
    assert main(["evaluate", "yard", *FLOW, "--store", "features", "--jobs", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dataset"]["sightings"] == 24
    (run,) = document["runs"]
    assert (run["learner"], run["descriptors"]) == ("within-scale", ["mean-colour"])
    assert run["summary"]["rank1"]["mean"] > 50


def test_a_model_of_them_is_saved_and_loaded(place: Path) -> None:
    assert main(["fit", "yard", *FLOW, "--store", "features", "--out", "model"]) == 0
    model = resight.load("model")
    assert type(model.learner) is toys.WithinScale
    images = sorted((place / "data" / "yard-images").iterdir())
    features = model.describe(images)
    assert features.shape == (24, 12)
    assert (model.distances(features[:12], features[12:]).argmin(axis=1) == np.arange(12)).all()


def test_the_common_checks_hold_for_them() -> None:
    checks = [str(HERE / "common" / f"test_{what}.py") for what in ("learners", "descriptors")]
    options = ["-q", "-p", "no:cacheprovider", "-k", "WithinScale or mean-colour", *checks]
    run = f"import sys, pytest, toys; toys.register(); sys.exit(pytest.main({options!r}))"
    paths = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", run],
        cwd=HERE.parent,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) > 80
