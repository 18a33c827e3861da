"""RankingResult: cannot be changed, cannot be nonsense, survives rankings.csv."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pytest

from resight.errors import InputError
from resight.evaluation import RankingResult, cmc
from resight.evaluation.result import COLUMNS


@pytest.fixture
def result() -> RankingResult:
    rng = np.random.default_rng(3)
    people = np.array([f"p{i}" for i in range(12)])
    return RankingResult.from_distances(
        rng.random((12, 24)), people, np.concatenate([people, people]), depth=5
    )


def test_measures_do_not_depend_on_the_depth_kept():
    rng = np.random.default_rng(1)
    D, people = rng.random((6, 6)), np.arange(6)
    shallow, deep = (RankingResult.from_distances(D, people, people, depth=d) for d in (0, 6))
    assert shallow.cmc.tolist() == deep.cmc.tolist() == cmc(D, people, people).tolist()
    assert deep.top.tolist() == np.argsort(D, axis=1).tolist()
    assert deep.top_distances == pytest.approx(np.sort(D, axis=1))


def test_rank_agrees_with_the_curve(result):
    assert [result.rank(k) for k in (1, 5, 10)] == pytest.approx(result.cmc[[0, 4, 9]])


def test_it_cannot_be_changed(result):
    with pytest.raises(ValueError, match="read-only"):
        result.hits[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.hits = result.hits


def test_it_does_not_share_memory_with_what_it_was_built_from():
    persons = np.array(["a", "b"])
    built = RankingResult.from_distances(np.eye(2), persons, persons)
    persons[0] = "z"
    assert built.persons.tolist() == ["a", "b"]


def test_csv_round_trip_restores_everything_exactly(result):
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["trial", *COLUMNS])
    writer.writeheader()
    writer.writerows({"trial": 0, **row} for row in result.to_rows())
    stream.seek(0)
    restored = RankingResult.from_rows(csv.DictReader(stream))
    for field in dataclasses.fields(result):
        np.testing.assert_array_equal(getattr(restored, field.name), getattr(result, field.name))


def test_lists_shorter_than_the_depth_survive_the_round_trip():
    result = RankingResult.from_distances(
        [[0.1, 0.2], [0.3, 0.4]],
        ["a", "a"],
        ["a", "a"],
        query_cameras=["1", "2"],
        gallery_cameras=["2", "3"],
        depth=4,
    )
    restored = RankingResult.from_rows(result.to_rows())
    assert restored.top.tolist() == [[0, 1], [1, -1]]
    assert restored.n_candidates.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hits": "999"}, "outside the ranked list"),
        ({"hits": "0 3"}, "outside the ranked list"),
        ({"hits": "5 3"}, "ascending"),
        ({"hits": ""}, "offsets"),
        ({"top": "1"}, "does not match its distances"),
        ({"top_distances": "1 2 3 4 5 6 7"}, "does not match its distances"),
        ({"hits": "one"}, "not a number"),
    ],
)
def test_a_damaged_row_is_refused(result, change, message):
    rows = result.to_rows()
    rows[2] = {**rows[2], **change}
    with pytest.raises(InputError, match=message):
        RankingResult.from_rows(rows)


def test_missing_columns_are_named():
    with pytest.raises(InputError, match="columns missing: person, first_rank"):
        RankingResult.from_rows([{"something": "else"}])
    with pytest.raises(InputError, match="no rows"):
        RankingResult.from_rows([])
