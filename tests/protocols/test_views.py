"""People and cameras become rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.protocols.views import (
    by_cameras,
    halves,
    people_seen_twice,
    require_cameras,
    scored_persons,
)


@given(st.sets(st.text(min_size=1, max_size=5), min_size=1), st.integers(0, 20), st.integers(0, 5))
def test_halves_divide_people_whatever_their_order(people, split, seed):
    train, test = halves(sorted(people), split, seed)
    assert set(train) | set(test) == people
    assert not set(train) & set(test)
    assert len(train) - len(test) in (0, 1)
    assert halves(sorted(people, reverse=True), split, seed) == (train, test)


def test_halves_are_fair():
    """Over many splits everybody trains about half of the time, and pairs a quarter."""
    people = [str(i) for i in range(40)]
    trains = np.array([[p in halves(people, s)[0] for p in people] for s in range(400)])
    assert np.abs(trains.mean(axis=0) - 0.5).max() < 0.1
    together = (trains.T.astype(float) @ trains) / 400
    off_diagonal = together[~np.eye(40, dtype=bool)]
    assert off_diagonal.mean() == pytest.approx(20 / 40 * 19 / 39, abs=0.01)


def test_the_rule_is_frozen():
    """Published figures depend on it: a change of these lists is a change of the protocol."""
    people = [str(i) for i in range(1, 9)]
    assert halves(people, 0) == (list("1327"), list("4685"))
    assert halves(people, 9, seed=3) == (list("6458"), list("7213"))


def test_two_cameras_ask_and_answer(own):
    sightings = own(4, "AB", images=2)
    split = by_cameras(sightings, ["0", "1"], ["2", "3"], ("B", "A"), both_directions=True)
    assert set(sightings.cameras[split.query]) == {"B"}
    assert set(sightings.cameras[split.gallery]) == {"A"}
    assert len(split.train) == 8
    query, gallery = split.reverse
    assert set(query) == set(split.gallery)
    assert set(gallery) == set(split.query)


def lonely() -> Sightings:
    """People 1 to 4 in both cameras, 5 in A only, 6 in B only, a distractor and junk in B."""
    rows = [(str(p), c, "") for p in range(1, 5) for c in "AB"]
    rows += [("5", "A", ""), ("6", "B", ""), ("0", "B", "distractor"), ("7", "B", "junk")]
    rows += [("", "B", "")]
    persons, cameras, roles = (np.array(column) for column in zip(*rows, strict=True))
    return Sightings(np.arange(len(rows)).astype(str), persons, cameras, roles=roles)


def test_people_of_one_camera_are_distractors_and_never_trained():
    sightings = lonely()
    assert people_seen_twice(sightings) == ["1", "2", "3", "4"]
    split = by_cameras(sightings, ["1", "2"], ["3", "4"], ("A", "B"), both_directions=True)
    assert sightings.persons[split.gallery].tolist() == ["3", "4", "6", "0"]
    assert sightings.persons[split.query].tolist() == ["3", "4"]
    assert sightings.persons[split.reverse[1]].tolist() == ["3", "4", "5"]
    split.check(sightings)


def test_distractors_are_strangers_to_each_other():
    sightings = lonely()
    rows = np.array([0, 9, 10])
    assert scored_persons(sightings, rows).tolist() == ["1", "6", ""]


def test_three_cameras_ask_each_other(own):
    sightings = own(4, "ABC")
    split = by_cameras(sightings, ["0", "1"], ["2", "3"])
    assert len(split.query) == len(split.gallery) == 6
    split.check(sightings, cross_camera_only=True)


def test_absent_and_shared_people_are_named(own):
    with pytest.raises(InputError, match="not among the labelled sightings of own: 8, 9;"):
        by_cameras(own(4), ["0", "9"], ["1", "8"])
    with pytest.raises(InputError, match="in both training and test set: 1;"):
        by_cameras(own(4), ["0", "1"], ["1", "2"])


def test_one_camera_or_no_label_says_what_to_change(own):
    with pytest.raises(InputError, match=r"one camera only, 'A'.*its own folder"):
        require_cameras(own(4, "A"))
    unlabelled = Sightings(np.array(["a", "b"]), np.array(["", ""]), np.array(["A", "B"]))
    with pytest.raises(InputError, match="no labelled sighting"):
        require_cameras(unlabelled)
