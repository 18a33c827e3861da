"""What tells matches from strangers, by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from resight.tuning.mixing import Held


def drawn(people, gap, seed=0):
    """Distances whose strangers are standard normal and whose matches stand before them."""
    rng = np.random.default_rng(seed)
    held = Held(np.tile(np.arange(people), 2), np.repeat([0, 1], people))
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
