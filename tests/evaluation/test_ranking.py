"""Ranked lists: order, padding, ties."""

from __future__ import annotations

import numpy as np

from resight.evaluation.ranking import answers, rank


def test_wrong_answers_come_before_right_ones_at_equal_distance():
    ranks = rank([[1.0, 1.0, 0.5, 1.0]], answers(["a"], ["a", "b", "c", "d"]), depth=4)
    assert ranks.top.tolist() == [[2, 1, 3, 0]]
    assert ranks.hits.tolist() == [4]


def test_ignored_sightings_are_not_listed():
    labels = answers(["a", "b"], ["a", "b", "a"], ["1", "2"], ["1", "1", "2"], [False] * 3)
    ranks = rank([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]], labels, depth=3)
    assert ranks.top.tolist() == [[1, 2, -1], [0, 1, 2]]
    assert ranks.n_candidates.tolist() == [2, 3]


def test_offsets_delimit_the_hits_of_each_query():
    labels = answers(["a", "b"], ["a", "a", "b"])
    ranks = rank(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), labels)
    assert np.split(ranks.hits, ranks.offsets[1:-1])[0].tolist() == [1, 3]
    assert ranks.offsets.tolist() == [0, 2, 3]
    assert ranks.top.shape == (2, 0)
