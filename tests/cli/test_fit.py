from __future__ import annotations

import json
from pathlib import Path

import pytest

import resight
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four labelled people before two cameras, and twelve before the same."""
    folder = tmp_path_factory.mktemp("fit")
    draw_cameras(folder / "many", 24, seed=2)
    draw_cameras(folder / "few", 12, seed=3)
    return folder


def words(place: Path, data: str, out: str) -> list[str]:
    given = ["fit", str(place / data), "--out", str(place / out), "--descriptor", "whos-star"]
    return [*given, "--store", str(place / "store"), "--jobs", "1"]


def test_a_fitted_model_states_probabilities_in_every_kind_of_search(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(place, "many", "model"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["calibrated"] is True
    assert facts["uncalibrated"] is None
    model = resight.load(place / "model")
    assert model.calibration.n_people == 24
    gallery = Gallery.create(place / "gallery", model)
    gallery.add(resight.datasets.load(place / "few"))
    image = str(place / "few/camera-1/0005/0001.png")
    assert main(["search", str(place / "gallery"), image, "--json"]) == 0
    (query,) = json.loads(capsys.readouterr().out)["queries"]
    assert 0 <= query["hits"][0]["probability"] <= 1
    assert query["presence"]["false_accepts"] == 0.1
    assert query["presence"]["compared"] == 24
    assert main(["search", str(place / "gallery"), image, "-k", "2"]) == 0
    table = capsys.readouterr().out
    assert "this gallery (at a false-accept rate of 10%, among 24 sightings)" in table
    assert table.count("%") == 1 + 2
    page = place / "found.html"
    assert main(["search", str(place / "gallery"), image, "--html", str(page)]) == 0
    assert 'class="presence' in page.read_text()
    assert 'class="probability"' in page.read_text()


def test_too_few_people_are_a_note_with_the_number_needed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(place, "few", "small")) == 0
    said = capsys.readouterr()
    assert "kxqda on 24 sightings of 12 people" in said.out
    assert "at least 20 people seen by two cameras, there are 12; label 8 more" in said.err
    assert resight.load(place / "small").calibration is None


def test_calibration_can_be_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(place, "many", "plain"), "--no-calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrated"] is False
