from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from resight.errors import InputError
from resight.learners._graphs import (
    Graph,
    check_persons,
    fisher_graphs,
    leading_directions,
    marginal_graphs,
    nearest,
    person_blocks,
    shrink,
)


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(0, 2))
@settings(max_examples=40, deadline=None)
def test_scatter_is_the_weighted_sum_over_pairs(seed, n, uniform):
    rng = np.random.default_rng(seed)
    W = rng.uniform(-1, 1, size=(n, n))
    W += W.T
    Z = rng.normal(size=(n, 3))
    expected = np.zeros((3, 3))
    for i in range(n):
        for j in range(i):
            expected += (W[i, j] + uniform) * np.outer(Z[i] - Z[j], Z[i] - Z[j])
    S = Graph(sparse.csr_array(W), uniform).scatter(Z)
    np.testing.assert_allclose(S, expected, atol=1e-10)


def test_blocks_hold_what_each_person_gives():
    persons = np.array([1, 0, 1, 2, 0])
    blocks = person_blocks(persons, lambda members: np.add.outer(members, members)).toarray()
    for i in range(5):
        for j in range(5):
            assert blocks[i, j] == (i + j if persons[i] == persons[j] else 0)


def test_without_locality_the_graphs_are_those_of_fisher():
    """With affinity 1, S_w and S_b are the scatters around and of the persons' means."""
    rng = np.random.default_rng(0)
    persons = np.array([0, 0, 1, 1, 1, 2, 2])
    Z = rng.normal(size=(7, 3))
    within, between = fisher_graphs(persons, lambda members: np.ones((len(members), len(members))))
    means = np.array([Z[persons == person].mean(axis=0) for person in persons])
    np.testing.assert_allclose(within.scatter(Z), (Z - means).T @ (Z - means), atol=1e-12)
    deviations = means - Z.mean(axis=0)
    np.testing.assert_allclose(between.scatter(Z), deviations.T @ deviations, atol=1e-12)


def test_nearest_joins_both_ways_and_never_the_forbidden():
    D2 = np.array([[0.0, 1, 9, 4], [1, 0, 5, 6], [9, 5, 0, 2], [4, 6, 2, 0]])
    allowed = np.ones((4, 4), dtype=bool)
    np.fill_diagonal(allowed, False)
    allowed[0, 1] = allowed[1, 0] = False
    joined = nearest(D2, allowed, 1).toarray()
    # 0 -> 3, 1 -> 2, 2 -> 3, 3 -> 2
    expected = np.zeros((4, 4))
    for i, j in [(0, 3), (1, 2), (2, 3)]:
        expected[i, j] = expected[j, i] = 1
    np.testing.assert_array_equal(joined, expected)


def test_more_neighbours_than_there_are_is_all_of_them():
    persons = np.array([0, 0, 1, 1, 2])
    Z = np.random.default_rng(0).normal(size=(5, 2))
    D2 = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    few = marginal_graphs(persons, lambda: D2, 99, 99)
    every = marginal_graphs(persons, lambda: D2, None, None)
    for some, whole in zip(few, every, strict=True):
        np.testing.assert_allclose(some.scatter(Z), whole.scatter(Z), atol=1e-12)


def test_all_pairs_need_no_distances():
    def refuse():
        raise AssertionError("distances were computed")

    marginal_graphs(np.array([0, 0, 1]), refuse, None, None)


def test_shrink_divides_by_sightings_and_keeps_its_input():
    S = np.diag([1.0, 3.0])
    np.testing.assert_allclose(shrink(S, 0.5, 8), np.diag([0.75, 1.75]))
    np.testing.assert_array_equal(S, np.diag([1.0, 3.0]))


def test_leading_directions_are_the_largest():
    values, V = leading_directions(np.diag([1.0, 9.0, 4.0]), np.eye(3), 2)
    np.testing.assert_allclose(values, [9, 4])
    np.testing.assert_allclose(np.abs(V), [[0, 0], [1, 0], [0, 1]], atol=1e-12)


def test_a_singular_denominator_says_what_helps():
    with pytest.raises(InputError, match="larger reg"):
        leading_directions(np.eye(2), np.zeros((2, 2)), 1)


@pytest.mark.parametrize(("persons", "message"), [([0, 0], "two persons"), ([0, 1], "two sight")])
def test_labels_without_a_comparison(persons, message):
    with pytest.raises(InputError, match=message):
        check_persons(np.array(persons))
