"""RankingResult: cannot be changed, and its rows tell all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from resight.evaluation import RankingResult, cmc
from resight.evaluation.ranking import COLUMNS


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


def test_rows_tell_everything_exactly(result):
    rows = result.to_rows()
    assert [tuple(row) for row in rows] == [COLUMNS] * len(result)
    for i, row in enumerate(rows):
        hits = result.hits[result.offsets[i] : result.offsets[i + 1]]
        assert row["hits"].split() == [str(hit) for hit in hits]
        assert [float(word) for word in row["top_distances"].split()] == list(
            result.top_distances[i]
        )


def test_lists_shorter_than_the_depth_are_told_as_they_are():
    result = RankingResult.from_distances(
        [[0.1, 0.2], [0.3, 0.4]],
        ["a", "a"],
        ["a", "a"],
        query_cameras=["1", "2"],
        gallery_cameras=["2", "3"],
        depth=4,
    )
    rows = result.to_rows()
    assert [row["top"] for row in rows] == ["0 1", "1"]
    assert [row["candidates"] for row in rows] == ["2", "1"]
