"""Boxes in larger pictures become crops with the same pixels and labels."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from resight.cli import main
from resight.datasets import load
from resight.datasets.cutting import cut_boxes
from resight.errors import InputError
from resight.images import read


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "frame.png"), frame)
    file = tmp_path / "boxes.csv"
    file.write_text(
        "path,person,camera,time,role,x,y,w,h\n"
        "frame.png,1,north,5,query,10,5,8,16\n"
        "frame.png,2,south/door,6,gallery,-4,30,10,20\n"
    )
    return file


def _add(table: Path, line: str) -> None:
    with table.open("a") as stream:
        stream.write(line)


def test_crops_have_the_pixels_of_their_boxes(table: Path, tmp_path: Path) -> None:
    done = cut_boxes(load(table), tmp_path / "crops")
    frame = read(tmp_path / "frame.png")
    first, second = (read(file) for file in done.sightings.files())
    np.testing.assert_array_equal(first, frame[5:21, 10:18])
    np.testing.assert_array_equal(second, frame[30:40, 0:6])  # clipped to the picture
    assert done.failures == {}


def test_the_new_folder_keeps_the_labels(table: Path, tmp_path: Path) -> None:
    cut_boxes(load(table), tmp_path / "crops")
    crops = load(tmp_path / "crops")
    assert crops.boxes is None
    assert crops.persons.tolist() == ["1", "2"]
    assert crops.cameras.tolist() == ["north", "south/door"]
    assert crops.times.tolist() == [5, 6]
    assert crops.roles.tolist() == ["query", "gallery"]


def test_failures_are_listed_and_the_rest_goes_on(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _add(table, "frame.png,3,north,7,,70,5,8,16\nnone.png,4,north,8,,1,1,8,16\n")
    out = tmp_path / "crops"
    assert main(["data", "cut", str(table), str(out), "--json"]) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["crops"] == len(load(out)) == 2
    assert [failure["row"] for failure in document["failures"]] == [3, 4]
    assert "outside the image of 60 x 40 pixels" in document["failures"][0]["reason"]
    assert "does not exist" in printed.err


def test_nothing_to_cut_and_full_folders_are_refused(table: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not empty"):
        cut_boxes(load(table), tmp_path)
    cut_boxes(load(table), tmp_path / "crops")
    with pytest.raises(InputError, match="already crops"):
        cut_boxes(load(tmp_path / "crops"), tmp_path / "again")
    table.write_text("path,person,camera,x,y,w,h\nnone.png,1,a,1,1,2,2\n")
    with pytest.raises(InputError, match="no box could be cropped"):
        cut_boxes(load(table), tmp_path / "third")
