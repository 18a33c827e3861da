"""Sums over features: equal to their definition over pairs, and additive in every way."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resight.learners._landmark_sums import ChunkSums, pair_weights, total

Q = 5


def draw(n_persons, n_cameras, most, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most + 1, size=(n_persons, n_cameras))
    counts[0, :2] = counts[1, :2] = 1  # at least one similar and one dissimilar pair
    who, where = np.indices(counts.shape)
    persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
    order = rng.permutation(len(persons))
    return 3.0 + rng.normal(size=(len(persons), Q)), persons[order], cameras[order]


def names_of(cameras):
    return None if cameras is None else np.array([f"camera {i}" for i in range(cameras.max() + 1)])


def at_once(F, persons, cameras):
    weights = pair_weights(persons, cameras)
    return ChunkSums.of_rows(F, persons, cameras, weights).finish(names_of(cameras))


def in_chunks(F, persons, cameras, cuts):
    weights = pair_weights(persons, cameras)
    return [
        ChunkSums.of_rows(
            F[rows], persons[rows], None if cameras is None else cameras[rows], weights[rows]
        )
        for rows in cuts
    ]


def by_definition(F, persons, cameras):
    """Sums over all pairs of rows, one by one."""
    sums, counts = np.zeros((2, Q, Q)), [0, 0]
    for i in range(len(F)):
        for j in range(i):
            if cameras is None or cameras[i] != cameras[j]:
                kind = int(persons[i] != persons[j])
                sums[kind] += np.outer(F[i] - F[j], F[i] - F[j])
                counts[kind] += 1
    return sums, counts


def assert_equal(a, b, tolerance=1e-9):
    assert a.n_similar == b.n_similar
    np.testing.assert_array_equal(a.counts, b.counts)
    if a.cameras is not None:
        np.testing.assert_array_equal(a.cameras, b.cameras)
    for name in ("similar", "sums", "moments"):
        mine, other = getattr(a, name), getattr(b, name)
        assert np.abs(mine - other).max() <= tolerance * np.abs(other).max()


@pytest.mark.parametrize("with_cameras", [True, False])
@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(2, 4), st.integers(1, 3), st.integers(0, 10**6))
def test_they_are_the_sums_over_pairs(with_cameras, n_persons, n_cameras, most, seed):
    F, persons, cameras = draw(n_persons, n_cameras, most, seed)
    cameras = cameras if with_cameras else None
    (similar, dissimilar), (n_similar, n_dissimilar) = by_definition(F, persons, cameras)
    found = at_once(F, persons, cameras)
    assert (found.n_similar, found.n_dissimilar) == (n_similar, n_dissimilar)
    for mine, expected in zip(
        found.covariances(), (similar / n_similar, dissimilar / n_dissimilar), strict=True
    ):
        np.testing.assert_allclose(mine, expected, atol=1e-10 * np.abs(dissimilar).max())


@pytest.mark.parametrize("with_cameras", [True, False])
def test_four_chunks_in_any_order_are_one(with_cameras):
    """People lie in several chunks: weights come from all labels, so nothing is lost."""
    F, persons, cameras = draw(12, 3, 4, seed=5)
    cameras = cameras if with_cameras else None
    expected = at_once(F, persons, cameras)
    chunks = in_chunks(F, persons, cameras, np.array_split(np.arange(len(F)), 4))
    assert any(len(set(persons[:5]) & set(persons[start:])) for start in (len(F) // 2,))
    for order in permutations(chunks):
        assert_equal(total(order).finish(names_of(cameras)), expected)


@pytest.mark.parametrize("with_cameras", [True, False])
def test_statistics_of_different_people_add_up(with_cameras):
    F, persons, cameras = draw(12, 3, 4, seed=6)
    cameras = cameras if with_cameras else None
    early = persons < 7
    parts = []
    for rows in (early, ~early):
        views = None if cameras is None else cameras[rows]
        sums = ChunkSums.of_rows(F[rows], persons[rows], views, pair_weights(persons[rows], views))
        parts.append(sums.finish(names_of(cameras)))
    expected = at_once(F, persons, cameras)
    assert_equal(total(parts), expected)
    assert_equal(total(parts[::-1]), expected)


def test_a_camera_may_be_new_or_missing_in_a_part():
    F, persons, cameras = draw(8, 2, 2, seed=7)
    elsewhere = cameras + 2
    named = np.array(["a", "b", "c", "d"])
    weights = pair_weights(persons, cameras)
    first = ChunkSums.of_rows(F, persons, cameras, weights).finish(named)
    second = ChunkSums.of_rows(F, persons, elsewhere, weights).finish(named)
    both = first + second
    assert both.cameras.tolist() == ["a", "b", "c", "d"]
    assert both.counts.tolist() == [*first.counts, *second.counts]


def test_the_second_moment_is_that_of_features_before_centring():
    F, persons, cameras = draw(8, 3, 2, seed=8)
    centre = np.arange(Q, dtype=float)
    found = at_once(F - centre, persons, cameras)
    np.testing.assert_allclose(found.second_moment(centre), F.T @ F)
    np.testing.assert_allclose(found.mean(), (F - centre).mean(axis=0))


def test_a_person_seen_once_has_no_weight():
    weights = pair_weights(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    assert weights.tolist() == [1, 1, 2, 0]
    assert pair_weights(np.array([0, 0, 0, 1]), None).tolist() == [3, 3, 3, 1]
