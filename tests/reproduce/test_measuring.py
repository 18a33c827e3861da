"""Drawn cameras in place of a dataset: the same path from images to the page."""

from __future__ import annotations

import json

import pytest

from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.reproduce.measuring import Bench, reproduce
from resight.reproduce.page import page_of
from resight.reproduce.paper import PaperRow, PaperTable


class DrawnTable(PaperTable):
    """A table of a folder of drawn cameras."""

    protocol_name = "half-half"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return table_of(36, tmp_path_factory.mktemp("drawn"))


def table_of(n_people, folder):
    draw_cameras(folder, n_people=n_people, size=(64, 32), seed=1)
    descriptors = ("whos-star",)
    row = PaperRow("kxqda", "k-XQDA", descriptors, {"rank1": 50.0}, False)
    return DrawnTable("table1", "drawn", str(folder), "single-shot", (row,), {})


@pytest.fixture(scope="module")
def measured(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    said = []
    return out, said, reproduce([table], Bench(out, out, say=said.append))


def test_every_version_is_measured(measured):
    _, said, document = measured
    rows = {row["version"]: row for row in document["tables"][0]["rows"]}
    assert list(rows) == ["paper", "paper-poly", "cv", "auto"]
    auto = rows["auto"]
    for counts in auto["chosen_by"].values():
        assert sum(counts.values()) <= 10
    assert sum(auto["chosen_by"]["variant"].values()) == 10
    assert {stage["stage"] for stage in auto["stages"]} > {"plain"}
    assert sum(stage["share"] for stage in auto["stages"]) == pytest.approx(100.0)
    assert [text for text in said if " (auto): rank 1 " in text] == said[3:4]


def test_where_people_are_too_few_to_choose_from_that_is_said(tmp_path):
    table, said = table_of(14, tmp_path / "drawn"), []
    document = reproduce([table], Bench(tmp_path, tmp_path, say=said.append), only=["auto"])
    (row,) = document["tables"][0]["rows"]
    assert row["version"] == "auto"
    assert "chosen_by" not in row
    assert "7 people seen by two cameras are too few to choose from" in said[-1]
    assert "chosen in the splits" not in page_of(document)


def test_the_page_tells_the_choice(measured):
    page = page_of(measured[2])
    assert "chosen in the splits: " in page
    assert "share of the mixture, best mAP alone on people held out: " in page
    assert "metrics tried in a split" in page


def test_a_second_call_measures_nothing(table, measured):
    out, _, document = measured
    said = []
    assert reproduce([table], Bench(out, out, say=said.append)) == document
    assert said == []


def test_an_interrupted_run_measures_the_missing_splits_only(table, measured):
    out, _, document = measured
    auto = next(
        file
        for file in (out / "runs").glob("*.json")
        if json.loads(file.read_text())["version"] == "auto"
    )
    kept = json.loads(auto.read_text())
    auto.unlink()
    splits = out / "splits" / auto.stem
    before = {file.name: file.stat().st_mtime_ns for file in splits.iterdir()}
    (splits / "3.json").unlink()
    again = reproduce([table], Bench(out, out))
    after = {file.name: file.stat().st_mtime_ns for file in splits.iterdir()}
    assert [name for name in before if before[name] != after[name]] == ["3.json"]
    assert json.loads(auto.read_text())["chosen"] == kept["chosen"]
    first, second = document["tables"][0]["rows"][-1], again["tables"][0]["rows"][-1]
    assert first["rank1"] == second["rank1"]


def test_one_version_can_be_measured_alone(table, measured, tmp_path):
    out, _, _ = measured
    (tmp_path / "features").symlink_to(out / "features")
    document = reproduce([table], Bench(out, tmp_path, n_jobs=2), only=["paper"])
    assert [row["version"] for row in document["tables"][0]["rows"]] == ["paper"]
    with pytest.raises(InputError, match="paper-poly"):
        reproduce([table], Bench(out, tmp_path), only=["papers"])
