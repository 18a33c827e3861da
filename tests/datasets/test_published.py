"""Loaders of published datasets: names to sightings, official and other layouts, real copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from resight import datasets
from resight.datasets import DATASETS, load
from resight.errors import InputError

Fill = Callable[[Iterable[str]], Path]
EXAMPLES = {
    # dataset, layout: file -> (person, camera, role, site, sequence)
    ("cuhk01", "official"): {
        "campus/0490001.png": ("490", "A", "", "", ""),
        "campus/0490002.png": ("490", "A", "", "", ""),
        "campus/0490003.png": ("490", "B", "", "", ""),
        "campus/0490004.png": ("490", "B", "", "", ""),
    },
    ("cuhk01", "flat"): {
        "0007002.png": ("7", "A", "", "", ""),
        "0007003.png": ("7", "B", "", "", ""),
    },
    ("prid450s", "official"): {
        "cam_a/img_001.png": ("1", "A", "", "", ""),
        "cam_b/img_001.png": ("1", "B", "", "", ""),
    },
    ("prid450s", "images"): {
        "images/0031001.png": ("31", "A", "", "", ""),
        "images/0031002.png": ("31", "B", "", "", ""),
    },
    ("grid", "official"): {
        "gallery/0000_5_25698_101_16_87_246.jpeg": ("0", "gallery", "distractor", "5", ""),
        "gallery/0012_2_25698_101_16_87_246.jpeg": ("12", "gallery", "", "2", ""),
        "probe/0012_1_25004_107_32_106_221.jpeg": ("12", "probe", "", "1", ""),
    },
    ("prid2011", "official"): {
        "single_shot/cam_a/person_0200.png": ("200", "cam_a", "", "", ""),
        "single_shot/cam_a/person_0201.png": ("a201", "cam_a", "junk", "", ""),
        "single_shot/cam_b/person_0200.png": ("200", "cam_b", "", "", ""),
        "single_shot/cam_b/person_0201.png": ("b201", "cam_b", "distractor", "", ""),
    },
    ("viper", "official"): {
        "cam_a/000_45.bmp": ("0", "cam_a", "", "", ""),
        "cam_b/000_90.bmp": ("0", "cam_b", "", "", ""),
    },
    ("market1501", "official"): {
        "bounding_box_test/-1_c1s1_000401_03.jpg": ("-1", "c1", "junk", "", "s1"),
        "bounding_box_test/0000_c6s3_094992_01.jpg": ("0", "c6", "distractor", "", "s3"),
        "bounding_box_test/0001_c2s1_000151_01.jpg": ("1", "c2", "gallery", "", "s1"),
        "bounding_box_train/0002_c1s1_000451_03.jpg": ("2", "c1", "train", "", "s1"),
        "query/0001_c1s1_001051_00.jpg": ("1", "c1", "query", "", "s1"),
    },
}


@pytest.mark.parametrize("key", EXAMPLES, ids="-".join)
def test_file_names_become_rows(key: tuple[str, str], fill: Fill) -> None:
    expected = EXAMPLES[key]
    folder = fill(sorted(expected, reverse=True))  # written in another order than returned
    sightings = load(key[0], root=folder)
    rows = zip(
        sightings.persons.tolist(),
        sightings.cameras.tolist(),
        sightings.roles.tolist(),
        sightings.sites.tolist(),
        sightings.sequences.tolist(),
        strict=True,
    )
    assert dict(zip(sightings.paths.tolist(), rows, strict=True)) == expected
    assert sightings.name == key[0]
    assert all(file.is_file() for file in sightings.files())


@pytest.mark.parametrize("key", EXAMPLES, ids="-".join)
def test_the_folder_above_may_be_given(key: tuple[str, str], fill: Fill) -> None:
    folder = fill([f"{DATASETS[key[0]].homes[0]}/{name}" for name in EXAMPLES[key]])
    assert len(load(key[0], root=folder)) == len(EXAMPLES[key])


def test_files_that_are_not_part_of_a_dataset_are_left_out(fill: Fill) -> None:
    names = [*EXAMPLES["market1501", "official"], "gt_bbox/0001_c1s1_001051_00.jpg"]
    assert len(load("market1501", root=fill(names))) == len(names) - 1


def test_two_layouts_at_once_are_refused(fill: Fill) -> None:
    folder = fill(["campus/0001001.png", "0001001.png"])
    with pytest.raises(InputError, match=r"two layouts.*keep one"):
        load("cuhk01", root=folder)


def test_a_folder_without_the_dataset_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no VIPeR images in.*cam_a/NNN_ANGLE\.bmp"):
        load("viper", root=tmp_path)


def test_a_name_without_root_asks_for_it() -> None:
    with pytest.raises(InputError, match="where is 'grid'"):
        load("grid")


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"did you mean 'grid'\?.*no folder or file"):
        load("gridd")


def test_a_root_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.* does not exist"):
        load("grid", root=tmp_path / "nowhere")


def test_every_dataset_tells_its_facts() -> None:
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert dataset.layouts
        for fact in (dataset.title, dataset.summary, dataset.licence, dataset.citation):
            assert len(fact) > 4


@pytest.mark.parametrize(
    ("name", "cameras", "roles"),
    [
        ("cuhk01", {"A": 1942, "B": 1942}, {"": 3884}),
        ("prid450s", {"A": 450, "B": 450}, {"": 900}),
        ("grid", {"gallery": 1025, "probe": 250}, {"": 500, "distractor": 775}),
        ("prid2011", {"cam_a": 385, "cam_b": 749}, {"": 400, "distractor": 549, "junk": 185}),
    ],
)
def test_real_copies_are_complete_and_recognised(
    name: str, cameras: dict[str, int], roles: dict[str, int], shared: Path
) -> None:
    sightings = load(name, root=shared / "data")
    assert Counter(sightings.cameras.tolist()) == cameras
    assert Counter(sightings.roles.tolist()) == roles
    assert len(sightings) == DATASETS[name].images
    paired = sightings.select(sightings.roles == "")
    assert len(set(paired.persons.tolist())) == DATASETS[name].people
    recognised = datasets.load(shared / "data" / name)
    assert recognised.name == name
    assert recognised.paths.tolist() == sightings.paths.tolist()
