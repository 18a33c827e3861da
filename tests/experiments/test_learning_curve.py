from __future__ import annotations

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.in_gram_space import measure
from resight.experiments.learning_curve import checked_sizes, learning_curve
from resight.experiments.tables import curve_table
from resight.plans import Plan
from resight.protocols import half_half
from resight.tuning.candidates import CV
from resight.tuning.gram import GramSpace


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    n = 40
    persons, cameras = np.tile(np.arange(n), 2), np.repeat([0, 1], n)
    turned = np.stack([np.eye(30), np.linalg.qr(rng.normal(size=(30, 30)))[0]])
    X = np.einsum("ij,ijk->ik", rng.normal(size=(n, 30))[persons], turned[cameras])
    X += 0.4 * rng.normal(size=X.shape)
    paths = np.array([f"{c}/{p}.png" for p, c in zip(persons, cameras, strict=True)])
    sightings = Sightings(paths, persons.astype(str), cameras.astype(str), name="points")
    return sightings, half_half(sightings, n_splits=3), GramSpace([X], precision="float64")


def test_more_people_help_and_the_end_is_the_evaluation(world):
    sightings, protocol, space = world
    curve = learning_curve(sightings, protocol, space, Plan("kxqda"), [5, 20], draws=2)
    few, all_of_them = curve["points"]
    assert [few["people"], all_of_them["people"]] == [5, 20]
    assert few["fits"] == 3 * 2
    assert all_of_them["fits"] == 3  # everybody: one fit a split
    trials = measure(sightings, protocol, space, [Plan("kxqda")])[0]
    measured = 100 * np.mean([trial["ranks"]["rank1"] for trial in trials])
    assert all_of_them["rank1"]["mean"] == pytest.approx(measured)
    assert few["map"]["mean"] < all_of_them["map"]["mean"]
    rise = all_of_them["rank1"]["mean"] - few["rank1"]["mean"]
    assert curve["gain"] == pytest.approx(rise / 2)  # 5 to 20: two doublings
    assert f"{curve['gain']:+.1f} points for each doubling" in curve["sentence"]
    assert curve_table(curve).count("\n") == 3


def test_a_curve_is_the_same_every_time_and_draws_are_nested(world):
    sightings, protocol, space = world
    curves = [
        learning_curve(sightings, protocol, space, Plan("kxqda"), sizes, draws=2)
        for sizes in ([5, 10], [10])
    ]
    assert curves[0]["points"][1] == curves[1]["points"][0]


def test_sizes_are_halvings_by_default():
    assert checked_sizes(None, 486) == [30, 60, 121, 243, 486]
    assert checked_sizes(None, 10) == [3, 5, 10]
    assert checked_sizes([50, 25, 50], 100) == [25, 50]


@pytest.mark.parametrize(
    ("sizes", "people", "says"),
    [
        ([25, 500], 486, "only 486 training people"),
        ([2, 50], 486, "at least 3 people"),
        ([], 486, "at least 3 people"),
        (None, 2, "there are 2"),
    ],
)
def test_impossible_sizes_are_refused(sizes, people, says):
    with pytest.raises(InputError, match=says):
        checked_sizes(sizes, people)


def test_a_plan_that_chooses_is_refused(world):
    sightings, protocol, space = world
    with pytest.raises(InputError, match="no fixed setting"):
        learning_curve(sightings, protocol, space, Plan("kxqda", "cv", candidates=CV))
