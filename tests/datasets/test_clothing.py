"""Clothes: patterns cover what they should, dressing is seeded."""

from __future__ import annotations

import numpy as np
import pytest

from resight.datasets._clothing import Appearance, Cloth

RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def _painted(pattern: str) -> np.ndarray:
    cloth = Cloth(RED, BLUE, pattern, period=0.1, offset=0.0)
    u = (np.arange(200, dtype=np.float32)[None, :] + 0.5) / 200  # ten periods
    v = (np.arange(200, dtype=np.float32)[:, None] + 0.5) / 200
    return np.broadcast_to(cloth.paint(u, v), (200, 200, 3))


@pytest.mark.parametrize("pattern", ["plain", "logo"])
def test_plain_cloth_has_one_colour(pattern: str) -> None:
    assert np.unique(_painted(pattern).reshape(-1, 3), axis=0).tolist() == [list(RED)]


@pytest.mark.parametrize("pattern", ["bands", "pinstripes", "checks"])
def test_repeating_patterns_mix_both_colours_half_and_half(pattern: str) -> None:
    np.testing.assert_allclose(_painted(pattern).mean(axis=(0, 1)), [0.5, 0, 0.5], atol=1e-6)


def test_directions_of_stripes() -> None:
    assert np.ptp(_painted("bands"), axis=1).max() == 0  # constant along a row
    assert np.ptp(_painted("pinstripes"), axis=0).max() == 0
    assert len(np.unique(_painted("checks").reshape(-1, 3), axis=0)) == 3


def test_two_tone_has_the_second_colour_above() -> None:
    painted = _painted("two-tone")  # v grows with the row here
    assert painted[0, 0].tolist() == list(RED)
    assert painted[-1, 0].tolist() == list(BLUE)


def test_dressing_is_seeded_and_varied() -> None:
    people = [Appearance(np.random.default_rng(seed)) for seed in range(60)]
    assert vars(people[3]) == vars(Appearance(np.random.default_rng(3)))
    assert len({str(vars(person)) for person in people}) == len(people)
    assert {person.bag for person in people} == {"none", "backpack", "shoulder", "hand"}
    assert {person.lower_kind for person in people} == {"trousers", "shorts", "skirt"}
