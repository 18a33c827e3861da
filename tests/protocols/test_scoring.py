"""Scores between people against loops over their sightings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.errors import InputError
from resight.protocols import person_scores

RULES = {"sum": np.sum, "min": np.min, "mean": np.mean}
people = st.lists(st.sampled_from("abc"), min_size=1, max_size=7)


@given(people, people, st.sampled_from(["min", "mean"]), st.integers(0, 1000))
def test_pools_all_distances_of_two_people(queries, gallery, rule, seed):
    D = np.random.default_rng(seed).random((len(queries), len(gallery)))
    scores = person_scores(D, queries, gallery, rule)
    assert scores.query_persons.tolist() == list(dict.fromkeys(queries))
    assert scores.gallery_persons.tolist() == list(dict.fromkeys(gallery))
    for i, q in enumerate(scores.query_persons):
        for j, g in enumerate(scores.gallery_persons):
            rows = [k for k, p in enumerate(queries) if p == q]
            columns = [k for k, p in enumerate(gallery) if p == g]
            assert scores.distances[i, j] == pytest.approx(RULES[rule](D[np.ix_(rows, columns)]))
            assert scores.query_rows[i] == rows[0]
            assert scores.gallery_rows[j] == columns[0]


def test_sum_is_the_mean_times_the_number_of_pairs():
    D = np.random.default_rng(0).random((4, 6))
    queries, gallery = list("abab"), list("abcabc")
    total, mean = (person_scores(D, queries, gallery, rule) for rule in ("sum", "mean"))
    assert total.distances == pytest.approx(4 * mean.distances)


def test_single_leaves_every_sighting_alone():
    D = np.arange(6.0).reshape(2, 3)
    scores = person_scores(D, ["a", "a"], ["a", "b", "b"], "single")
    assert scores.distances.tolist() == D.tolist()
    assert scores.gallery_rows.tolist() == [0, 1, 2]


def test_unknown_people_are_never_put_together():
    scores = person_scores([[1.0, 2.0, 3.0, 5.0]], ["a"], ["", "a", "", "a"], "min")
    assert scores.gallery_persons.tolist() == ["", "a", ""]
    assert scores.distances.tolist() == [[1.0, 2.0, 3.0]]


def test_sum_over_unequal_numbers_of_sightings_is_refused():
    with pytest.raises(InputError, match="b has 1 and a has 2; use 'mean'"):
        person_scores(np.zeros((1, 3)), ["a"], ["a", "a", "b"], "sum")


def test_refusals_say_what_is_allowed():
    with pytest.raises(InputError, match="did you mean 'mean'"):
        person_scores([[1.0]], ["a"], ["a"], "meen")
    with pytest.raises(InputError, match="one row per query"):
        person_scores([[1.0]], ["a", "b"], ["a"], "min")
