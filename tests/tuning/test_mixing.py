"""Weights of distances: the closed form against its definition, and what counts as a crowd."""

from __future__ import annotations

import numpy as np
import pytest

from resight.tuning import mixing
from resight.tuning.mixing import Held, Likelihood, separating_weights, trusting_weights


def drawn(people=40, gaps=(2.0, 1.0), correlation=0.0, seed=0):
    """Distances whose strangers are standard normal and whose matches stand before them."""
    rng = np.random.default_rng(seed)
    persons, cameras = np.tile(np.arange(people), 2), np.repeat([0, 1], people)
    held = Held.of(persons, cameras)
    common = rng.normal(size=(2 * people, 2 * people))
    own = rng.normal(size=(len(gaps), 2 * people, 2 * people))
    distances = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    distances -= np.array(gaps)[:, None, None] * held.same
    return held, distances


def test_uncorrelated_descriptors_weigh_as_their_gaps():
    held, distances = drawn(people=150)
    weights, separation = separating_weights(held, distances)
    assert weights[1] / weights[0] == pytest.approx(0.5, abs=0.1)
    assert separation == pytest.approx(2.0**2 + 1.0**2, rel=0.15)


def test_weights_solve_the_shrunk_normal_equations():
    held, distances = drawn(gaps=(2.0, 1.5), correlation=0.4)
    weights, separation = separating_weights(held, distances)
    rows = held.asked
    gap, strangers = [], []
    for of_metric in distances:  # query by query, as the definition says
        usual = [of_metric[q][held.other[q]].mean() for q in rows]
        pairs = zip(rows, usual, strict=True)
        gap.append(np.mean([u - of_metric[q][held.same[q]].mean() for q, u in pairs]))
        pairs = zip(rows, usual, strict=True)
        strangers.append(np.concatenate([of_metric[q][held.other[q]] - u for q, u in pairs]))
    covariance = np.array(strangers) @ np.array(strangers).T / len(strangers[0])
    covariance[0, 1] *= 1.0 - mixing.UNCORRELATED
    covariance[1, 0] = covariance[0, 1]
    np.testing.assert_allclose(weights, np.linalg.solve(covariance, gap), rtol=1e-9)
    assert separation == pytest.approx(weights @ np.array(gap))


def test_what_points_the_wrong_way_gets_no_weight():
    held, distances = drawn(gaps=(2.0, -1.0))
    weights, _ = separating_weights(held, distances)
    assert weights[0] > 0.0
    assert weights[1] == 0.0


def test_units_of_a_descriptor_do_not_matter():
    held, distances = drawn(gaps=(2.0, 1.5), correlation=0.3)
    weights, separation = separating_weights(held, distances)
    scaled, again = separating_weights(held, distances * np.array([1.0, 7.0])[:, None, None])
    np.testing.assert_allclose(scaled * [1.0, 7.0], weights, rtol=1e-9)
    assert again == pytest.approx(separation)


def test_a_person_counts_once_however_often_seen():
    held, distances = drawn()
    twice = np.concatenate([np.arange(len(held.persons)), np.flatnonzero(held.persons == 0)])
    more = Held.of(held.persons[twice], np.repeat([0, 1], 40)[twice])
    weights, _ = separating_weights(more, distances[:, twice][:, :, twice])
    known, _ = separating_weights(held, distances)
    np.testing.assert_allclose(weights, known, rtol=0.15)


def test_a_network_is_trusted_alone_unless_others_help_people_left_out():
    held, distances = drawn(people=12, gaps=(4.0, 0.2))
    weights, separation = trusting_weights(held, distances, [True, False])
    assert weights[1] == 0.0
    assert separation == pytest.approx(separating_weights(held, distances[:1])[1])
    held, distances = drawn(people=12, gaps=(2.0, 2.0))
    assert trusting_weights(held, distances, [True, False])[0].all()
    held, distances = drawn(people=12, gaps=(4.0, 0.2))
    np.testing.assert_array_equal(
        trusting_weights(held, distances, [False, False])[0], separating_weights(held, distances)[0]
    )


def test_strangers_count_as_many_as_a_search_meets(monkeypatch):
    """The same strangers twice leave the likelihood as it is: their number does not matter."""
    held, distances = drawn(people=8)
    value = Likelihood([held], [distances])(np.ones(2))[0]
    query = held.asked[0]
    logits = -distances.sum(axis=0)[query]
    match, others = logits[held.same[query]], logits[held.other[query]]
    crowd = mixing.STRANGERS * np.exp(others).mean()
    expected = np.log(np.exp(match).sum() + crowd) - np.log(np.exp(match).sum())
    alone = Held(held.same.copy(), held.other.copy(), held.persons)
    alone.same[np.arange(16) != query] = False
    assert Likelihood([alone], [distances])(np.ones(2))[0] == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(mixing, "STRANGERS", 1000)
    assert Likelihood([held], [distances])(np.ones(2))[0] > value
