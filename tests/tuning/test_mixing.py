"""What tells matches from strangers, by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from resight.evaluation.metrics import average_precisions
from resight.tuning.mixing import Comparisons


def drawn(people, gap, seed=0):
    """Distances whose strangers are standard normal and whose matches stand before them."""
    rng = np.random.default_rng(seed)
    held = Comparisons(np.tile(np.arange(people), 2), np.repeat([0, 1], people))
    return held, rng.normal(size=(2 * people, 2 * people)) - gap * held.same


def test_gaps_are_how_far_matches_stand_before_strangers():
    held, distances = drawn(60, 2.0)
    gaps = held.gaps(distances)
    assert gaps.shape == (60,)
    assert gaps.mean() == pytest.approx(2.0, abs=0.3)
    first = distances[0][held.other[0]].mean() - distances[0][held.same[0]].mean()
    second = distances[60][held.other[60]].mean() - distances[60][held.same[60]].mean()
    assert gaps[0] == pytest.approx((first + second) / 2 / held.spread(distances))


def test_gaps_do_not_depend_on_the_unit():
    held, distances = drawn(8, 1.0)
    np.testing.assert_allclose(held.gaps(3.0 * distances + 5.0), held.gaps(distances))


@pytest.mark.parametrize("shots", [1, 2])
def test_precisions_of_people_are_those_of_the_ranking_even_with_ties(shots):
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(12), 2 * shots), np.repeat([0, 1], 12 * shots)
    D = rng.integers(0, 6, (len(persons), len(persons))).astype(float)
    expected = np.zeros(12)
    for a, b in ((0, 1), (1, 0)):
        query, gallery = np.flatnonzero(cameras == a), np.flatnonzero(cameras == b)
        found = average_precisions(D[np.ix_(query, gallery)], persons[query], persons[gallery])
        expected += np.bincount(persons[query], found) / (2 * shots)
    np.testing.assert_allclose(Comparisons(persons, cameras).precisions(D), expected, rtol=1e-15)
