"""Choosing a protocol for some sightings."""

from __future__ import annotations

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.protocols import for_dataset, possible


def test_the_usual_protocol(own, grid):
    assert for_dataset(own(6)).name == "half-half"
    assert for_dataset(grid).name == "grid"
    assert for_dataset(grid, "half-half").name == "half-half"


def test_roles_are_used_when_given(table):
    rows = [("a", "1", "A", "train"), ("b", "1", "B", "train")]
    rows += [("c", "2", "A", "query"), ("d", "2", "B", "gallery")]
    assert for_dataset(table(rows)).name == "roles"


def test_unknown_names_list_the_valid_ones(own):
    with pytest.raises(InputError, match=r"did you mean 'half-half'\? Valid: half-half, roles"):
        for_dataset(own(6), "halfhalf")


def test_possible_says_why_not(own, grid):
    assert possible(own(6))[1] == ("half-half", None)
    assert [name for name, why in possible(grid) if why is None] == ["grid", "half-half"]
    reasons = dict(possible(own(6, "A")))
    assert "one camera only" in reasons["half-half"]
    assert "needs train, query and gallery" in reasons["roles"]


def test_possible_survives_an_empty_table():
    empty = Sightings(*(np.array([], str) for _ in range(3)))
    assert all(why is not None for _, why in possible(empty))
