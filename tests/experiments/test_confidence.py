from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.confidence import (
    _first_is_right,
    _half,
    by_person,
    confidence,
    upper_bound,
)
from resight.experiments.in_gram_space import measure
from resight.plans import Plan
from resight.protocols import half_half
from resight.tuning.gram import GramSpace


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(1)
    n = 90
    persons, cameras = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    X = (2.0 * rng.normal(size=(n, 30)) * np.linspace(1, 0.1, 30))[persons]
    X += 0.5 * rng.normal(size=X.shape)
    paths = np.array([f"{c}/{p}.png" for p, c in zip(persons, cameras, strict=True)])
    sightings = Sightings(paths, persons.astype(str), cameras.astype(str), name="points")
    return sightings, half_half(sightings, n_splits=4), GramSpace([X], precision="float64")


def test_stated_and_true_over_all_queries(world):
    sightings, protocol, space = world
    found = confidence(sightings, protocol, space, Plan("kxqda"))
    first, gone = found["first_match"], found["not_in_gallery"]
    queries = sum(len(query) for split in protocol.splits for query, _ in split.directions)
    assert first["queries"] == queries == gone["queries"] + gone["missing"]
    trials = measure(sightings, protocol, space, [Plan("kxqda")])[0]
    assert first["right"] == pytest.approx(np.mean([one["ranks"]["rank1"] for one in trials]))
    assert first["ece"] < 0.15
    assert first["log_loss"] < first["log_loss_constant"]
    assert gone["false_accepts"] < 0.3
    assert gone["identified"] <= found["half_missing"]["right"] * 2


def test_half_of_the_queries_are_chosen_always_the_same_way():
    asked = np.array([f"{i}" for i in range(21)])
    assert _half(asked).sum() == 10
    np.testing.assert_array_equal(_half(asked), _half(asked))


def test_sightings_of_a_known_person_are_one_unit_and_ties_are_wrong():
    D = np.array([[1.0, 3.0, 2.0, 5.0], [2.0, 2.0, np.inf, 2.0]])
    units, own = by_person(D, np.array(["a", "a", "b", ""]), np.array(["a", "b"]))
    np.testing.assert_array_equal(units, [[5.0, 2.0, 2.0], [2.0, 2.0, np.inf]])
    np.testing.assert_array_equal(own, [[False, True, False], [False, False, True]])
    np.testing.assert_array_equal(_first_is_right(units, own), [False, False])


def test_bounds_count_people_and_not_queries():
    wrong = np.zeros(100, bool)
    wrong[:10] = True
    alone, together = np.arange(100), np.arange(100) // 10  # one person has all ten errors
    assert 0.1 < upper_bound(wrong, alone) < 0.2
    assert upper_bound(wrong, together) > upper_bound(wrong, alone)


def test_pooled_distances_are_refused(world):
    sightings, protocol, space = world
    with pytest.raises(InputError, match="single-shot"):
        confidence(sightings, replace(protocol, scoring="min"), space, Plan("kxqda"))
