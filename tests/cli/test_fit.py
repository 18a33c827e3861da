from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import resight
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.workers import executors


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four labelled people before two cameras, and twelve before the same."""
    folder = tmp_path_factory.mktemp("fit")
    draw_cameras(folder / "many", 24, seed=2)
    draw_cameras(folder / "few", 12, seed=3)
    return folder


def words(place: Path, data: str, out: str) -> list[str]:
    given = ["fit", str(place / data), "--out", str(place / out), "--descriptor", "whos-star"]
    given += ["--learner", "kxqda"]
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
    assert query["presence"]["compared"] == 24 - 1  # without the picture itself
    assert main(["search", str(place / "gallery"), image, "-k", "2"]) == 0
    table = capsys.readouterr().out
    assert "in this gallery" in table
    assert "23 sightings searched" in table
    assert table.count("%") == 2
    page = place / "found.html"
    assert main(["search", str(place / "gallery"), image, "--html", str(page)]) == 0
    assert 'class="presence' in page.read_text()
    assert 'class="probability"' in page.read_text()


def test_too_few_people_are_a_note_with_the_number_needed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(place, "few", "small")) == 0
    said = capsys.readouterr()
    assert "kxqda trained on 24 sightings of 12 people" in said.out
    assert "at least 20 people seen by two cameras, there are 12; label 8 more" in said.err
    assert resight.load(place / "small").calibration is None


def test_calibration_can_be_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(place, "many", "plain"), "--no-calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrated"] is False


@pytest.fixture(scope="module")
def growing(place: Path) -> Path:
    """Sixteen of twenty-four people in one folder, the others in another; a landmark model."""
    draw_cameras(place / "town", 24, 2, 2, seed=5)
    for person in sorted((place / "town").glob("*/*")):
        camera = place / ("early" if person.name <= "0016" else "late") / person.parent.name
        camera.mkdir(parents=True, exist_ok=True)
        person.rename(camera / person.name)
    landmarks = ["--landmarks", "8", "--param", "reg=1e-3"]
    assert main([*words(place, "early", "landmarks"), *landmarks]) == 0
    return place


def adding(place: Path, data: str, model: str, out: str) -> list[str]:
    given = ["fit", str(place / data), "--add", str(place / model), "--out", str(place / out)]
    return [*given, "--store", str(place / "store"), "--jobs", "1"]


def test_people_are_added_to_a_landmark_model(
    growing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*adding(growing, "late", "landmarks", "more"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["people"], facts["sightings"], facts["calibrated"]) == (24, 96, False)
    late = resight.datasets.load(growing / "late")
    expected, more = resight.load(growing / "landmarks"), resight.load(growing / "more")
    features = expected.describe(late.files())
    before = expected.embed(features)
    expected.add_people(features, late.persons, late.cameras)
    np.testing.assert_allclose(more.embed(features), expected.embed(features), rtol=1e-9)
    assert not np.allclose(more.embed(features), before, rtol=1e-3)
    assert facts["fingerprint"] == more.fingerprint
    assert main(adding(growing, "late", "landmarks", "again")) == 0
    assert "kxqda trained on 96 sightings of 24 people" in capsys.readouterr().out


def test_known_people_and_other_models_are_refused(
    growing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(adding(growing, "early", "landmarks", "never")) == 1
    assert "16 people were learned from before" in capsys.readouterr().err
    assert main([*words(growing, "many", "exact"), "--no-calibrate"]) == 0
    assert main(adding(growing, "late", "exact", "never")) == 1
    assert "a fitted kxqda with landmarks" in capsys.readouterr().err
    resight.load(growing / "landmarks").learner.save(growing / "learner")
    assert main(adding(growing, "late", "learner", "never")) == 1
    assert "holds a KXQDA, not a model" in capsys.readouterr().err
    assert not (growing / "never").exists()


@pytest.mark.parametrize(
    "option",
    [
        ["--learner", "kxqda"],
        ["--landmarks", "8"],
        ["--param", "reg=1"],
        ["--descriptor", "gog"],
        ["--mirror"],
    ],
)
def test_what_the_model_decides_is_not_given_again(
    growing: Path, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert main([*adding(growing, "late", "landmarks", "never"), *option]) == 2
    assert f"{option[0]} is fixed by the model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--jobs", "1", "--cluster", "tcp://127.0.0.1:9"], 2, "not both"),
        (["--cluster", "127.0.0.1:9"], 1, "expected tcp://HOST:PORT"),
        (["--cluster", "tcp://127.0.0.1:9"], 1, "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_a_cluster_that_is_none(
    place: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    code: int,
    text: str,
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "cluster", partial(executors.cluster, timeout=0.5))
    given = ["fit", str(place / "few"), "--out", str(place / "never"), "--store", str(place / "s")]
    assert main([*given, *options]) == code
    assert text in capsys.readouterr().err
    assert not (place / "never").exists()


def test_camel_learns_from_folders_of_unknown_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = draw_cameras(tmp_path / "drawn", 12, 2, seed=3)
    for row, file in enumerate(drawn.files()):
        home = tmp_path / "unlabelled" / str(drawn.cameras[row])
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, home / f"{row:03d}{Path(file).suffix}")
    given = ["fit", str(tmp_path / "unlabelled"), "--descriptor", "whos-star", "--jobs", "1"]
    given += ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "model")]
    assert main([*given, "--learner", "kxqda"]) == 1
    assert "has a person" in capsys.readouterr().err
    assert main([*given, "--learner", "camel", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["people"], facts["sightings"], facts["calibrated"]) == (0, 24, False)
    model = resight.load(tmp_path / "model")
    assert model.embed(model.describe(drawn.files()[:2])).shape == (2, model.learner.n_components_)
