"""Ranked lists: order, padding, ties."""

from __future__ import annotations

import numpy as np

from resight.evaluation import RankingResult

ranked = RankingResult.from_distances


def test_wrong_answers_come_before_right_ones_at_equal_distance():
    ranks = ranked([[1.0, 1.0, 0.5, 1.0]], ["a"], ["a", "b", "c", "d"], depth=4)
    assert ranks.top.tolist() == [[2, 1, 3, 0]]
    assert ranks.hits.tolist() == [4]


def test_ignored_sightings_are_not_listed():
    ranks = ranked(
        [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]],
        ["a", "b"],
        ["a", "b", "a"],
        query_cameras=["1", "2"],
        gallery_cameras=["1", "1", "2"],
        junk=[False] * 3,
        depth=3,
    )
    assert ranks.top.tolist() == [[1, 2, -1], [0, 1, 2]]
    assert ranks.n_candidates.tolist() == [2, 3]


def test_offsets_delimit_the_hits_of_each_query():
    D = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    ranks = ranked(D, ["a", "b"], ["a", "a", "b"], depth=0)
    assert np.split(ranks.hits, ranks.offsets[1:-1])[0].tolist() == [1, 3]
    assert ranks.offsets.tolist() == [0, 2, 3]
    assert ranks.top.shape == (2, 0)
