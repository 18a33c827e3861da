"""Half/half for people's own data."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.protocols import half_half


def test_every_split_tests_half_of_the_people(own):
    sightings = own(11, "AB", images=2)
    protocol = half_half(sightings).check(sightings)
    assert len(protocol.splits) == 10
    for split in protocol.splits:
        assert len(np.unique(sightings.persons[split.train])) == 6
        assert len(np.unique(sightings.persons[split.query])) == 5
        assert set(sightings.cameras[split.query]) == {"A"}
    assert len({tuple(split.train) for split in protocol.splits}) > 5


def test_seed_and_order_of_rows(own):
    sightings = own(12)
    order = np.random.default_rng(0).permutation(len(sightings))
    mixed = sightings.select(order)
    first, other = half_half(sightings).splits[0], half_half(sightings, seed=1).splits[0]
    again = half_half(mixed).splits[0]
    assert set(sightings.paths[first.train]) == set(mixed.paths[again.train])
    assert set(first.train) != set(other.train)


def test_three_cameras_follow_the_market_rule(own):
    sightings = own(8, "ABC")
    protocol = half_half(sightings, n_splits=2).check(sightings)
    assert protocol.cross_camera_only
    assert len(protocol.splits[0].query) == 12


def test_too_few_people_cameras_or_splits(own):
    with pytest.raises(InputError, match="3 people of own appear in two or more cameras"):
        half_half(own(3))
    with pytest.raises(InputError, match="one camera only"):
        half_half(own(8, "A"))
    with pytest.raises(InputError, match="at least one split"):
        half_half(own(8), n_splits=0)
