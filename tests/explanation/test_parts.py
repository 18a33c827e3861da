"""Parts of descriptors: every feature once, strips where the descriptor says."""

from __future__ import annotations

import numpy as np
import pytest

from resight.descriptors import DESCRIPTORS, descriptor
from resight.explanation import Explanation
from resight.explanation.attribution import EXACT
from resight.explanation.parts import N_BANDS, partition_of


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_every_feature_belongs_to_a_part_of_its_channel(name: str) -> None:
    partition, parts = partition_of((name,)), descriptor(name).feature_parts()
    assert len(partition.of_feature) == descriptor(name).n_features
    np.testing.assert_array_equal(partition.channel[partition.of_feature], parts.channel)
    assert {one.name for one in partition.channels} == set(parts.channels)
    np.testing.assert_allclose(partition.bands.sum(axis=1), 1.0)


def test_gog_strips_lie_over_two_bands_each() -> None:
    bands = partition_of(("gog",)).bands.reshape(4, 7, N_BANDS)
    for strip in range(7):
        expected = np.zeros(N_BANDS)
        expected[strip : strip + 2] = 0.5  # a quarter of the height, in bands of an eighth
        np.testing.assert_allclose(bands[:, strip], np.tile(expected, (4, 1)))


def test_sums_stay_when_parts_are_gathered() -> None:
    partition = partition_of(("gog", "lomo-dagger", "whos-star"))
    for values in np.random.default_rng(0).normal(size=(3, len(partition.channel))):
        found = Explanation(1.0, EXACT, partition, values)
        for gathered in (found.bands, found.channels, found.regions, [found.whole]):
            np.testing.assert_allclose(sum(one.contribution for one in gathered), values.sum())


def test_descriptors_side_by_side_are_told_apart() -> None:
    alone, both = partition_of(("whos-star",)), partition_of(("gog", "whos-star"))
    n_gog = descriptor("gog").n_features
    first = both.of_feature[n_gog]
    np.testing.assert_array_equal(both.of_feature[n_gog:] - first, alone.of_feature)
    titles = [channel.title for channel in both.channels]
    assert len(set(titles)) == 7
    assert titles[-1] == "edges (whos-star hog)"
