"""Rank 1 across cameras against the definition in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.errors import InputError
from resight.learners._scoring import cross_camera_rank1


def by_definition(D, persons, cameras):
    """Loop over directions and queries exactly as the docstring says it."""
    rates = []
    for a in set(cameras):
        for b in set(cameras) - {a}:
            hits = []
            for i in range(len(persons)):
                gallery = [j for j in range(len(persons)) if cameras[j] == b]
                right = [D[i, j] for j in gallery if persons[j] == persons[i]]
                wrong = [D[i, j] for j in gallery if persons[j] != persons[i]]
                if cameras[i] == a and right:
                    hits.append(all(min(right) < w for w in wrong))
            if hits:
                rates.append(np.mean(hits))
    return np.mean(rates) if rates else None


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 3), st.integers(2, 5))
def test_equals_the_definition_with_many_ties(seed, n, n_cameras, n_values):
    rng = np.random.default_rng(seed)
    D = rng.integers(0, n_values, (n, n)).astype(float)
    persons, cameras = rng.integers(0, 4, n), rng.integers(0, n_cameras, n)
    expected = by_definition(D, persons, cameras)
    if expected is None:
        with pytest.raises(InputError, match="two different cameras"):
            cross_camera_rank1(D, persons, cameras)
    else:
        assert cross_camera_rank1(D, persons, cameras) == pytest.approx(expected)


def test_without_cameras_every_sighting_but_itself_is_the_gallery():
    D = np.array([[0, 1, 2.0], [1, 0, 1], [2, 1, 0]])
    assert cross_camera_rank1(D, ["a", "a", "b"]) == 0.5  # row 1 ties with the wrong person


def test_each_direction_counts_the_same():
    # Camera A has three sightings of one person, camera B one of each of two people.
    persons, cameras = np.array([1, 1, 1, 1, 2]), np.array(list("AAABB"))
    D = np.ones((5, 5))
    D[:3, 3] = 0.0  # A finds person 1 in B always
    assert cross_camera_rank1(D, persons, cameras) == 1.0
    D[:3, 3] = 2.0  # A never does, B (whose gallery holds nobody else) always: mean of 0 and 1
    assert cross_camera_rank1(D, persons, cameras) == 0.5


def test_all_equal_distances_score_zero():
    assert cross_camera_rank1(np.zeros((4, 4)), [1, 2, 1, 2], list("AABB")) == 0.0


@pytest.mark.parametrize(
    ("D", "persons", "cameras", "message"),
    [
        (np.zeros((2, 3)), [1, 1], None, "square matrix"),
        (np.full((2, 2), np.nan), [1, 1], None, "NaN"),
        (np.zeros((2, 2)), [1, 2], None, "two sightings"),
        (np.zeros((2, 2)), [1, 1], ["A", "A"], "two different cameras"),
    ],
)
def test_refusals_say_what_is_needed(D, persons, cameras, message):
    with pytest.raises(InputError, match=message):
        cross_camera_rank1(D, persons, cameras)
