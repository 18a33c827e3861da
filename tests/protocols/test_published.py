"""The protocols of published datasets, from file names alone and on the real folders."""

from __future__ import annotations

import numpy as np
import pytest

from resight.datasets import DATASETS
from resight.errors import InputError
from resight.protocols import for_dataset
from resight.protocols.published import committed_splits


def test_cuhk01_single_shot_trains_with_all_and_tests_with_one_picture(cuhk01):
    protocol = for_dataset(cuhk01)
    assert protocol.name == "cuhk01-single-shot"
    assert protocol.scoring == "single"
    for split, people in zip(protocol.splits, committed_splits(protocol.name), strict=True):
        assert (len(split.train), len(split.query), len(split.gallery)) == (1944, 485, 485)
        assert cuhk01.persons[split.query].tolist() == list(people.test)
        assert cuhk01.persons[split.gallery].tolist() == list(people.test)
        named = [int(path[-5]) for path in cuhk01.paths[split.gallery]]
        assert named == list(people.gallery_pictures)


def test_cuhk01_multi_shot_sums_over_two_by_two_pictures(cuhk01):
    protocol = for_dataset(cuhk01, "cuhk01-multi-shot")
    assert protocol.scoring == "sum"
    for split in protocol.splits:
        assert (len(split.train), len(split.query), len(split.gallery)) == (1940, 972, 972)
        assert set(cuhk01.cameras[split.query]) == {"A"}


def test_an_incomplete_cuhk01_is_refused_and_says_what_is_missing(cuhk01):
    kept = cuhk01.paths != "campus/0007003.png"
    for name in ("cuhk01-single-shot", "cuhk01-multi-shot"):
        with pytest.raises(InputError, match="1 of 3884 CUHK01 images are missing: 0007003;"):
            for_dataset(cuhk01.select(kept), name)


def test_grid_searches_900_and_never_trains_a_distractor(grid):
    protocol = for_dataset(grid)
    for split in protocol.splits:
        assert (len(split.train), len(split.query), len(split.gallery)) == (250, 125, 900)
        assert set(grid.cameras[split.query]) == {"probe"}
        assert not np.any(grid.roles[split.train] == "distractor")
        assert np.sum(grid.roles[split.gallery] == "distractor") == 775


def test_prid2011_searches_649_and_leaves_camera_a_strangers_out(prid2011):
    protocol = for_dataset(prid2011)
    assert len(protocol.splits) == 10
    for split in protocol.splits:
        assert (len(split.train), len(split.query), len(split.gallery)) == (200, 100, 649)
        assert set(prid2011.cameras[split.query]) == {"cam_a"}
        assert np.all(prid2011.roles[split.train] == "")
        used = np.concatenate([split.train, split.query, split.gallery])
        assert not np.any(prid2011.roles[used] == "junk")


def test_the_prid2011_rule_is_frozen(prid2011):
    """Published figures depend on it."""
    first = for_dataset(prid2011).splits[0]
    tested = sorted(map(int, prid2011.persons[first.query]))
    assert tested[:12] == [4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 18]


def test_incomplete_galleries_are_refused(grid, prid2011):
    with pytest.raises(InputError, match="774 distractors in camera 'gallery' of grid, expected"):
        for_dataset(grid.select(np.arange(len(grid) - 1)))
    with pytest.raises(InputError, match="548 distractors"):
        for_dataset(prid2011.select(np.arange(len(prid2011) - 1)))
    with pytest.raises(InputError, match="199 people of prid2011 appear in both cameras"):
        for_dataset(prid2011.select(np.arange(1, len(prid2011))))


def test_viper_is_divided_316_and_316(table):
    rows = [(f"cam_{c}/{p}.bmp", str(p), f"cam_{c}") for c in "ab" for p in range(632)]
    protocol = for_dataset(table(rows, "VIPeR"))
    assert {(len(s.train), len(s.query), len(s.gallery)) for s in protocol.splits} == {
        (632, 316, 316)
    }


def test_prid450s_names_missing_people(table):
    rows = [(f"{p}{c}.png", str(p), c) for c in "AB" for p in range(1, 451)]
    protocol = for_dataset(table(rows, "prid450s"))
    assert {(len(s.train), len(s.query)) for s in protocol.splits} == {(450, 225)}
    with pytest.raises(InputError, match=r"1 people are not among .*: 450;"):
        for_dataset(table([row for row in rows if row[1] != "450"], "prid450s"))


def market(table):
    return table(
        [
            ("bounding_box_train/1a.jpg", "1", "c1", "train"),
            ("bounding_box_train/1b.jpg", "1", "c2", "train"),
            ("query/2.jpg", "2", "c1", "query"),
            ("bounding_box_test/2a.jpg", "2", "c1", "gallery"),
            ("bounding_box_test/2b.jpg", "2", "c3", "gallery"),
            ("bounding_box_test/0.jpg", "0", "c1", "distractor"),
            ("bounding_box_test/-1.jpg", "-1", "c1", "junk"),
        ],
        "market1501",
    )


def test_market_takes_roles_as_given_and_drops_junk(table):
    protocol = for_dataset(market(table))
    (split,) = protocol.splits
    assert protocol.cross_camera_only
    assert split.train.tolist() == [0, 1]
    assert split.query.tolist() == [2]
    assert split.gallery.tolist() == [3, 4, 5]


def test_roles_name_what_is_missing(table):
    with pytest.raises(
        InputError, match="no sighting of this dataset has the role query or gallery"
    ):
        for_dataset(market(table).select(np.arange(2)), "roles")


@pytest.mark.parametrize(
    ("name", "gallery"), [("cuhk01", 485), ("grid", 900), ("prid2011", 649), ("prid450s", 225)]
)
def test_the_real_folders_fit_their_protocols(shared, name, gallery):
    sightings = DATASETS[name].load(shared / "data")
    protocol = for_dataset(sightings)
    assert len(protocol.splits) == 10
    assert {len(split.gallery) for split in protocol.splits} == {gallery}
