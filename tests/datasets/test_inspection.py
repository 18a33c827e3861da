"""Counts by hand, and every trouble that files can have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from resight.datasets import Sightings, load
from resight.datasets.inspection import check_files, overview

Fill = Callable[[Iterable[str]], Path]


def test_counts_by_hand() -> None:
    rows = [
        ("1", "a", ""), ("1", "a", ""), ("1", "b", ""), ("2", "b", "query"), ("10", "a", ""),
        ("", "a", ""), ("9", "b", "distractor"), ("-1", "b", "junk"),
    ]  # fmt: skip
    persons, cameras, roles = (np.array(c) for c in zip(*rows, strict=True))
    paths = np.array([f"{i}.png" for i in range(len(rows))])
    found = overview(Sightings(paths, persons, cameras, roles=roles))
    assert (found["images"], found["people"]) == (8, 3)
    assert (found["unknown"], found["distractors"], found["junk"]) == (1, 1, 1)
    assert found["cameras"] == {camera: {"images": 4, "people": 2} for camera in "ab"}
    assert found["images_per_person_and_camera"] == {"min": 1, "median": 1, "max": 2}
    assert found["one_camera_only"] == ["2", "10"]


def test_unlabelled_data_has_no_people(fill: Fill) -> None:
    found = overview(load(fill(["a/1.png", "b/1.png"])))
    assert (found["people"], found["unknown"]) == (0, 2)
    assert set(found["images_per_person_and_camera"].values()) == {0}


def test_sound_files_have_no_troubles(fill: Fill) -> None:
    found = check_files(load(fill(["a/p/1.png", "b/p/1.png"])))
    assert found == {"unreadable": [], "duplicates": [], "conflicts": []}


def test_troubles_are_found_and_the_rest_goes_on(fill: Fill) -> None:
    names = ["a/p/1.png", "a/p/2.png", "a/p/3.png", "a/q/1.png", "a/q/2.png", "b/p/1.png"]
    folder = fill(names)
    whole = (folder / names[0]).read_bytes()
    (folder / names[1]).write_bytes(whole[: len(whole) // 2])
    (folder / names[2]).write_bytes(b"")
    (folder / names[3]).write_text("not an image at all")
    (folder / names[4]).write_bytes(whole)
    sightings = load(folder)
    (folder / names[5]).unlink()
    found = check_files(sightings)
    paths = [one["path"] for one in found["unreadable"]]
    assert paths == [names[1], names[2], names[3], names[5]]
    reasons = [one["reason"] for one in found["unreadable"]]
    for reason, word in zip(reasons, ("damaged", "empty", "not an image", "exist"), strict=True):
        assert word in reason
        assert str(folder) not in reason
    assert found["duplicates"] == [[names[0], names[4]]]
    assert found["conflicts"] == found["duplicates"]  # person p and person q


def test_a_frame_with_two_boxes_is_no_duplicate(fill: Fill) -> None:
    folder = fill(["frame.png"])
    sightings = Sightings(
        np.array(["frame.png"] * 2), np.array(["1", "2"]), np.array(["a", "a"]),
        boxes=np.array([[0, 0, 4, 8], [8, 0, 4, 8]]), root=folder,
    )  # fmt: skip
    assert check_files(sightings)["duplicates"] == []
