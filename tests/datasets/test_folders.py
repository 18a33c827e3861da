"""People's own folders: every layout, and every way to get it wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from resight.datasets import load, write_table
from resight.errors import InputError

Fill = Callable[[Iterable[str]], Path]


def test_camera_and_person_folders(fill: Fill) -> None:
    names = ["north/anna/2.png", "north/anna/10.png", "north/ben/x.jpg", "south/anna/1.png"]
    sightings = load(fill(reversed(names)))
    assert sightings.paths.tolist() == names  # 2 before 10
    assert sightings.cameras.tolist() == ["north"] * 3 + ["south"]
    assert sightings.persons.tolist() == ["anna", "anna", "ben", "anna"]
    assert sightings.name == fill([]).name


def test_camera_folders_without_people(fill: Fill) -> None:
    sightings = load(fill(["a/1.png", "a/2.png", "b/1.png"]))
    assert sightings.persons.tolist() == ["", "", ""]
    assert sightings.cameras.tolist() == ["a", "a", "b"]


def test_market_style_names_in_one_folder(fill: Fill) -> None:
    sightings = load(fill(["0002_c1s1_000451_03.jpg", "0002_c2s2_000452_01.jpg", "-1_c1.jpg"]))
    rows = dict(zip(sightings.paths.tolist(), sightings.persons.tolist(), strict=True))
    assert rows["0002_c1s1_000451_03.jpg"] == "0002"
    assert set(sightings.cameras.tolist()) == {"c1", "c2"}
    assert sorted(sightings.roles.tolist()) == ["", "", "junk"]
    assert sorted(sightings.sequences.tolist()) == ["", "s1", "s2"]


def test_market_style_names_below_role_folders(fill: Fill) -> None:
    names = ["gallery/0000_c1s1_1.jpg", "gallery/0003_c2s1_1.jpg", "query/0003_c1s1_1.jpg"]
    sightings = load(fill([*names, "train/0001_c1s1_1.jpg"]))
    assert sightings.roles.tolist() == ["distractor", "gallery", "query", "train"]


def test_a_table_in_the_folder_is_used(fill: Fill) -> None:
    folder = fill(["a/p/1.png", "b/p/1.png", "b/q/1.png"])
    write_table(load(folder).select([2, 0]), folder / "sightings.csv")
    again = load(folder)
    assert again.paths.tolist() == ["b/q/1.png", "a/p/1.png"]
    assert again.name == folder.name
    assert again.root == folder


def test_hidden_and_other_files_are_ignored(fill: Fill) -> None:
    folder = fill(["a/p/1.png", "b/p/1.png", "a/p/.2.png", ".cache/x/3.png"])
    (folder / "README.txt").write_text("about")
    (folder / "a" / "Thumbs.db").write_bytes(b"\0")
    assert len(load(folder)) == 2


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_linked_folders_are_followed_and_loops_end(fill: Fill) -> None:
    folder = fill(["store/a/p/1.png", "view/b/p/1.png"])
    (folder / "view" / "a").symlink_to(folder / "store" / "a")
    assert load(folder / "view").cameras.tolist() == ["a", "b"]
    (folder / "view" / "a" / "p" / "loop").symlink_to(folder / "view")
    assert len(load(folder / "view")) == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no images in"),
        (["1.png", "2.png"], "no camera folders"),
        (["a/p/1.png", "b/1.png"], "mixed layouts.*'b/1.png' and 'a/p/1.png'"),
        (["x/a/p/1.png"], "nested too deeply"),
        (["0001_c1s1_1.jpg", "holiday.jpg"], "is named as in Market-1501 but 'holiday.jpg' is not"),
        (["query/0001_c1s1_1.jpg", "b/0001_c2s1_1.jpg"], "but 'b/0001_c2s1_1.jpg' is not"),
    ],
)
def test_wrong_layouts_are_refused(names: list[str], message: str, fill: Fill) -> None:
    with pytest.raises(InputError, match=message):
        load(fill(names))


def test_empty_folders_are_named(fill: Fill) -> None:
    folder = fill(["a/p/1.png", "b/p/1.png"])
    (folder / "b" / "q").mkdir()
    with pytest.raises(InputError, match=r"'b/q' in .* has no images; add some or remove it"):
        load(folder)
    (folder / "c").mkdir()
    with pytest.raises(InputError, match="'b/q' and 1 more"):
        load(folder)


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("path,person,camera\n")
    with pytest.raises(InputError, match="is not a table"):
        load(tmp_path / "notes.txt")
