"""``resight data``: what it prints, what it returns, its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resight.cli import main
from resight.datasets import DATASETS, fingerprint, load
from resight.datasets.synthetic import draw_cameras


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    draw_cameras(folder, n_people=6, images_per_camera=2, distractors=2, size=(32, 16))
    return folder


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["data", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_list_names_every_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    shown = capsys.readouterr().out
    for name, dataset in DATASETS.items():
        assert f"{name}: " in shown
        assert dataset.citation in shown
    code, document = _json(capsys, "list")
    assert code == 0
    assert [entry["name"] for entry in document["datasets"]] == list(DATASETS)


def test_info_counts(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _json(capsys, "info", str(town))
    assert code == 0
    assert (document["images"], document["people"], document["distractors"]) == (28, 6, 4)
    assert document["cameras"]["camera-2"] == {"images": 16, "people": 6}
    assert document["images_per_person_and_camera"] == {"min": 2, "median": 2, "max": 2}
    possible = {entry["name"]: entry["why_not"] for entry in document["protocols"]}
    assert possible["half-half"] is None
    assert main(["data", "info", str(town)]) == 0
    assert "camera camera-2: 16 images, 6 people" in capsys.readouterr().out


def test_check_of_sound_data(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _json(capsys, "check", str(town))
    assert code == 0
    assert document["problems"] == document["unreadable"] == document["duplicates"] == []
    assert document["fingerprint"] == fingerprint(load(town))
    assert main(["data", "check", str(town)]) == 0
    assert "no problems found" in capsys.readouterr().out


def test_check_lists_troubles_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw_cameras(tmp_path, n_people=4, size=(32, 16))
    (tmp_path / "sightings.csv").unlink()
    first, second = (tmp_path / f"camera-1/000{i}/0001.png" for i in (1, 2))
    second.write_bytes(first.read_bytes())
    (tmp_path / "camera-2/0003/0001.png").write_bytes(b"rubbish")
    (tmp_path / "notes.txt").write_text("mine")
    code, document = _json(capsys, "check", str(tmp_path))
    assert code == 1
    assert [entry["path"] for entry in document["unreadable"]] == ["camera-2/0003/0001.png"]
    assert document["conflicts"] == [["camera-1/0001/0001.png", "camera-1/0002/0001.png"]]
    assert any("notes.txt" in note for note in document["notes"])
    assert main(["data", "check", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "unreadable: camera-2/0003/0001.png" in printed.err
    assert "problem: 1 unreadable file:" in printed.out


def test_one_camera_only_is_a_problem_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_cameras(tmp_path, n_people=4, n_cameras=1, images_per_camera=2, size=(32, 16))
    code, document = _json(capsys, "check", str(tmp_path))
    assert code == 1
    assert document["one_camera_only"] == ["0001", "0002", "0003", "0004"]
    assert all(entry["why_not"] for entry in document["protocols"])
    assert any("no evaluation is possible" in problem for problem in document["problems"])


def test_bad_input_is_one_line_and_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "info", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: no images in")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("words", [["data"], ["data", "look"], ["data", "info"], ["data", "-x"]])
def test_wrong_usage_is_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    capsys.readouterr()


def test_a_dataset_by_name(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = _json(capsys, "info", "grid", "--root", str(shared / "data"))
    assert code == 0
    assert (document["people"], document["distractors"]) == (250, 775)
