"""Splits and protocols refuse what would measure something else than they say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.protocols import Protocol, Split


@pytest.fixture
def sightings() -> Sightings:
    """Rows 0-3: people 1, 2 in A, B; rows 4-7: people 3, 4 in A, B; then special cases."""
    return Sightings(
        np.array([f"{i}.png" for i in range(11)]),
        np.array(["1", "1", "2", "2", "3", "3", "4", "4", "0", "", "1"]),
        np.array(["A", "B"] * 4 + ["B", "B", "B"]),
        roles=np.array([""] * 8 + ["distractor", "", ""]),
    )


GOOD = Split([0, 1, 2, 3], [4, 6], [5, 7, 8])


def test_a_good_split_passes(sightings):
    GOOD.check(sightings)
    Split([0, 1, 2, 3], [4, 6], [5, 7], reverse=([5, 7], [4, 6])).check(sightings)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (Split([0, 1, 2, 3], [4, 6], [5, 7, 10]), "in both training and test set: 1;"),
        (Split([0, 1, 2, 3], [4, 6], [5, 8]), "not in the gallery: 4;"),
        (Split([0, 1, 8], [4], [5]), "distractors, junk or of unknown people, such as '8.png'"),
        (Split([0, 1, 9], [4], [5]), "distractors, junk or of unknown people, such as '9.png'"),
        (Split([0, 2], [4], [5]), "one camera, 'A'"),
        (Split([0, 1], [5], [7]), "one camera only, 'B'"),
        (Split([0, 1], [9, 4], [5]), "no person label"),
        (Split([0, 1], [4], [55]), "row 55, but there are 11"),
        (Split([0, 1], [4], [5], reverse=([5], [6])), "not in the gallery: 3;"),
    ],
)
def test_a_bad_split_names_what_is_wrong(sightings, split, message):
    with pytest.raises(InputError, match=message):
        split.check(sightings)


def test_under_the_market_rule_the_own_camera_is_no_answer(sightings):
    split = Split([0, 1, 2, 3], [4, 6], [4, 5, 6])
    with pytest.raises(InputError, match=r"such as '4\.png', and would match themselves"):
        split.check(sightings)
    with pytest.raises(InputError, match="gallery by another camera: 4;"):
        split.check(sightings, cross_camera_only=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1], [2]), "such as row 1"),
        (([], [1], [2]), "at least one row"),
        (([0, 0], [1], [2]), "distinct row numbers"),
        (([-1], [1], [2]), "row numbers, counted from 0"),
        (([0.5], [1], [2]), "row numbers, counted from 0"),
    ],
)
def test_rows_must_make_sense(arguments, message):
    with pytest.raises(InputError, match=message):
        Split(*arguments)


def test_splits_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        GOOD.train[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        GOOD.train = np.array([7])


def test_directions_and_test_rows():
    split = Split([0, 1], [4], [5, 7], reverse=([5], [4, 6]))
    assert [tuple(map(np.ndarray.tolist, pair)) for pair in split.directions] == [
        ([4], [5, 7]),
        ([5], [4, 6]),
    ]
    assert split.test.tolist() == [4, 5, 6, 7]


def test_a_protocol_says_which_split_is_wrong(sightings):
    bad = Split([0, 1, 2, 3], [4, 6], [5, 8])
    with pytest.raises(InputError, match=r"'mine', split 1: .*not in the gallery: 4"):
        Protocol("mine", (GOOD, bad)).check(sightings)


def test_a_protocol_refuses_nonsense():
    with pytest.raises(InputError, match="no split"):
        Protocol("mine", ())
    with pytest.raises(InputError, match="Valid: mean, min, single, sum"):
        Protocol("mine", (GOOD,), scoring="median")
    with pytest.raises(InputError, match="own camera cannot be ignored"):
        Protocol("mine", (GOOD,), scoring="sum", cross_camera_only=True)


def test_summary_counts_and_fingerprint_follows_the_rows(sightings):
    protocol = Protocol("mine", (GOOD,))
    facts = protocol.summary(sightings)
    assert (facts["train_people"], facts["query_people"], facts["gallery"]) == (2, 2, 3)
    other = Protocol("mine", (Split([0, 1, 2, 3], [6, 4], [5, 7, 8]),))
    assert protocol.fingerprint != other.fingerprint
    assert protocol.fingerprint == Protocol("other name", (GOOD,)).fingerprint
