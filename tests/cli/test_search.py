from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.models.model import Model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery of eight people before two cameras, and their pictures beside it."""
    folder = tmp_path_factory.mktemp("search")
    drawn = draw_cameras(folder / "cameras", n_people=8, n_cameras=2, seed=1)
    model = Model(("whos-star",), KXQDA())
    model.fit(model.describe(drawn.files()), drawn.persons, drawn.cameras)
    from dataclasses import replace

    timed = replace(drawn, times=np.arange(16.0) * 60)
    Gallery.create(folder / "gallery", model).add(timed)
    return folder


def image(place: Path) -> str:
    return str(place / "cameras/camera-1/0005/0001.png")


def test_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["search", str(place / "gallery"), image(place), "--top", "3", "--same-pictures"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert "this very picture is stored, at camera-1" in lines[0]
    assert "not calibrated yet: label 12 more people" in lines[1]
    assert len(lines) == 3 + 3
    assert "camera-1" in lines[3]
    assert "0:04:00" in lines[3]
    assert "0005" in lines[3]
    assert lines[3].endswith(" / 0001.png")


def test_json_with_conditions(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", str(place / "gallery"), image(place), image(place), "--json"]
    words += ["--camera", "camera-2", "--after", "0:10:00", "--before", "720"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "resight.search/2"
    assert told["reranking"] is None
    first, second = told["queries"]
    assert first == second
    assert sorted(hit["time"] for hit in first["hits"]) == [600.0, 660.0, 720.0]
    assert {hit["camera"] for hit in first["hits"]} == {"camera-2"}
    assert set(first["hits"][0]) >= {"rank", "id", "person", "distance", "probability"}


def test_page(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.html"
    assert (
        main(
            ["search", str(place / "gallery"), image(place), "--html", str(file), "--same-pictures"]
        )
        == 0
    )
    page = file.read_text()
    assert page.count("data:image/png;base64,") == 1 + 16
    assert 'src="/' not in page  # nothing is loaded from elsewhere
    assert "http" not in page.replace("http-equiv", "")


def test_re_ranked_results_are_marked(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(place / "cameras/camera-2/0002/0001.png")
    words = [
        "search",
        str(place / "gallery"),
        image(place),
        other,
        "-k",
        "3",
        "--same-pictures",
        "--rerank",
    ]
    assert main([*words, "k-reciprocal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("re-ranked by k-reciprocal: post-processing that uses the gallery")
    assert ["rank", "was"] in [line.split()[:2] for line in lines]
    assert main([*words, "cross-view", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reranking"]["method"] == "cross-view"
    assert "post-processing" in told["reranking"]["note"]
    assert all(hit["rank_before"] for query in told["queries"] for hit in query["hits"])
    file = tmp_path / "found.html"
    assert main([*words, "k-reciprocal", "--html", str(file)]) == 0
    assert "Re-ranked by k-reciprocal: post-processing" in file.read_text()
    assert "was " in file.read_text()


def test_nothing_found_says_how_to_widen(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", str(place / "gallery"), image(place)]
    assert main([*words, "--camera", "camera-2", "--before", "5"]) == 0
    assert "nothing found; widen the search: any camera or any time" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--camera", "camera-3"], "did you mean 'camera-"),
        (["--after", "noon"], "is not a valid time"),
        (["--after", "9", "--before", "3"], "later than"),
        (["--rerank", "cross-view"], "two or more images"),
        (["--rerank", "reciprocal"], "did you mean 'k-reciprocal'"),
    ],
)
def test_mistakes(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    assert main(["search", str(place / "gallery"), image(place), *words]) == 1
    assert expected in capsys.readouterr().err


def test_queries_that_cannot_be_used(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    Image.new("RGB", (64, 128), "navy").save(tmp_path / "wall.png")
    (tmp_path / "text.png").write_text("hello")
    for name, words in (
        ("wall.png", "it shows no person"),
        ("text.png", "not an image"),
        ("missing.png", "does not exist"),
    ):
        assert main(["search", str(place / "gallery"), str(tmp_path / name)]) == 1
        assert words in capsys.readouterr().err
    assert main(["search", str(place / "gallery"), image(place), "-k", "0"]) == 2


def test_several_images_of_one_person_and_tracks(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(place / f"cameras/camera-{n}/0005/0001.png") for n in (1, 2)]
    words = ["search", str(place / "gallery"), *files, "--together", "--by-track"]
    assert main([*words, "--top", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{files[0]} and 1 more")
    assert told.count("0005") == 3  # the name, and both sightings of the person
    assert main([*words, "--json"]) == 0
    [query] = json.loads(capsys.readouterr().out)["queries"]
    assert (query["image"], query["images"]) == (files[0], files)
    assert {hit["track"] for hit in query["hits"]} == {""}
    assert main([*words, "--html", str(tmp_path / "found.html")]) == 0
    assert "and 1 more" in (tmp_path / "found.html").read_text()
    assert main([*words, "--rerank", "k-reciprocal"]) == 1
    assert "not tracks" in capsys.readouterr().err
