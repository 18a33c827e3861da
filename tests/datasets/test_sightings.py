"""The table itself: validated, frozen, selectable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from resight.datasets import Sightings
from resight.datasets.sightings import seen_by_two
from resight.errors import InputError


def _three(**columns: object) -> Sightings:
    parts = {"paths": ["x", "y", "z"], "persons": ["1", "2", "1"], "cameras": ["a", "a", "b"]}
    return Sightings(**{name: np.array(values) for name, values in parts.items()}, **columns)


def test_columns_not_given_are_empty() -> None:
    sightings = _three()
    assert len(sightings) == 3
    assert np.isnan(sightings.times).all()
    for column in (sightings.roles, sightings.sequences, sightings.sites):
        assert column.tolist() == ["", "", ""]
    assert sightings.boxes is None


def test_heights_are_those_of_the_boxes_or_of_the_files(tmp_path: Path) -> None:
    boxes = np.array([[0, 0, 10, 30], [5, 5, 20, 60], [1, 2, 3, 4]])
    assert _three(boxes=boxes).heights().tolist() == [30, 60, 4]
    for name, height in (("x", 90), ("y", 128)):
        Image.new("RGB", (40, height)).save(tmp_path / name, format="PNG")
    (tmp_path / "z").write_text("no picture")
    assert _three(root=tmp_path).heights().tolist() == [90, 128, 0]


def test_nothing_can_be_changed() -> None:
    paths = np.array(["x", "y", "z"])
    sightings = Sightings(paths, np.array(["1"] * 3), np.array(["a"] * 3))
    paths[0] = "changed"
    assert sightings.paths[0] == "x"
    with pytest.raises(ValueError, match="read-only"):
        sightings.persons[0] = "2"
    with pytest.raises(AttributeError):
        sightings.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("rows", [[2, 0], [False, True, True], []])
def test_select_keeps_every_column_in_step(rows: list) -> None:
    full = _three(times=np.array([1.0, 2.0, 3.0]), boxes=np.arange(1, 13).reshape(3, 4))
    part = full.select(np.array(rows, dtype=bool if True in rows else int))
    chosen = np.arange(3)[np.array(rows, dtype=bool if True in rows else int)]
    assert part.paths.tolist() == full.paths[chosen].tolist()
    assert part.times.tolist() == full.times[chosen].tolist()
    assert part.boxes is not None
    assert full.boxes is not None
    assert part.boxes.tolist() == full.boxes[chosen].tolist()


def test_files_are_below_root_unless_absolute() -> None:
    sightings = Sightings(
        np.array(["a.png", "/data/b.png"]), np.array(["", ""]), np.array(["c", "c"]),
        root=Path("/home"),
    )  # fmt: skip
    assert sightings.files() == [Path("/home/a.png"), Path("/data/b.png")]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="3 paths but 2 roles"):
        _three(roles=np.array(["", ""]))


def test_unknown_roles_are_refused() -> None:
    with pytest.raises(InputError, match="unknown role 'probe'; allowed: train, query"):
        _three(roles=np.array(["probe", "", ""]))


@pytest.mark.parametrize("kind", [str, object])
def test_people_are_counted_by_the_cameras_that_saw_them(kind: type) -> None:
    persons = np.array(["c", "a", "b", "a", "b", "c", "d"]).astype(kind)
    cameras = np.array([1, 2, 1, 1, 1, 2, 2])
    assert seen_by_two(persons, cameras).tolist() == ["a", "c"]
    assert len(seen_by_two(persons[:0], cameras[:0])) == 0
