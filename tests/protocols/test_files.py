"""Users' own split files."""

from __future__ import annotations

import json

import pytest

from resight.errors import InputError
from resight.protocols import from_file


@pytest.fixture
def write(tmp_path):
    def to_file(document):
        path = tmp_path / "mine.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return to_file


PEOPLE = {"train": ["0", "1"], "test": ["2", "3"]}
PATHS = {"train": ["A/0_0.png", "B/0_0.png"], "query": ["A/1_0.png"], "gallery": ["B/1_0.png"]}


def test_people(own, write):
    sightings = own(4)
    protocol = from_file(write([PEOPLE]), sightings)
    (split,) = protocol.splits
    assert protocol.name == "mine"
    assert sightings.persons[split.query].tolist() == ["2", "3"]
    assert set(sightings.cameras[split.gallery]) == {"B"}


def test_people_as_numbers_or_with_leading_zeros(own, write):
    sightings = own(4)
    protocol = from_file(write([{"train": [0, 1], "test": ["0002", "03"]}]), sightings)
    assert sightings.persons[protocol.splits[0].query].tolist() == ["2", "3"]


def test_settings(own, write):
    document = {"name": "x", "scoring": "mean", "both_directions": True, "splits": [PEOPLE]}
    protocol = from_file(write(document), own(4, "AB", 2))
    assert (protocol.name, protocol.scoring) == ("x", "mean")
    assert len(protocol.splits[0].directions) == 2


def test_paths_and_their_ends(own, write):
    sightings = own(4)
    elsewhere = {key: [f"/data/mine/{p}" for p in paths] for key, paths in PATHS.items()}
    for document in ([PATHS], [elsewhere]):
        (split,) = from_file(write(document), sightings).splits
        assert sightings.paths[split.query].tolist() == ["A/1_0.png"]
        assert sightings.paths[split.gallery].tolist() == ["B/1_0.png"]


def test_three_cameras_ignore_the_own_camera(own, write):
    assert from_file(write([PEOPLE]), own(4, "ABC")).cross_camera_only


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is not JSON"),
        ("3", "list of splits"),
        ({"splitts": []}, "key 'splits'"),
        ({"splits": [], "name": "x"}, "at least one split"),
        ({"splits": [PEOPLE], "score": "sum"}, "did you mean 'scoring'"),
        ({"splits": [PEOPLE], "scoring": "all"}, "unknown scoring rule"),
        ({"splits": PEOPLE}, "'splits' must be a list"),
        ({"splits": [PEOPLE], "name": 3}, "'name' must be a string, not 3"),
        ({"splits": [PEOPLE], "both_directions": "no"}, "must be true or false"),
        ({"splits": [PATHS], "both_directions": True}, "another split for the other direction"),
        ([{"train": ["0"]}], r"split 0 has the keys \['train'\]"),
        ([["0"]], r"has the keys \[\]"),
        ([{"train": "0", "test": ["1"]}], "'train' must be a list"),
        ([{"train": ["0", "9"], "test": ["1"]}], "split 0: 1 people are not among .*: 9;"),
        (
            [PEOPLE, {"train": ["0", "1"], "test": ["1"]}],
            "split 1: .*in both training and test set: 1;",
        ),
        ([{**PATHS, "query": ["A/x.png"]}], "'A/x.png' is not among the sightings"),
        ([{**PATHS, "query": ["1_0.png"]}], "'1_0.png' matches 2 sightings"),
        ([{**PATHS, "gallery": ["B/2_0.png"]}], "not in the gallery: 1;"),
        ([{**PATHS, "gallery": ["B/0_0.png"]}], "used for both training and testing"),
        ([{**PATHS, "train": []}], "at least one row"),
        ([{**PATHS, "gallery": ["A/1_0.png", "B/1_0.png"]}], "would match themselves"),
    ],
)
def test_refusals_name_the_place(own, write, document, message):
    with pytest.raises(InputError, match=message):
        from_file(write(document), own(4))


def test_a_missing_file_and_one_camera(own, write, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        from_file(tmp_path / "none.json", own(4))
    with pytest.raises(InputError, match="one camera only"):
        from_file(write([PEOPLE]), own(4, "A"))
