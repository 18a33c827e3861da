from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from resight.tuning.race import variants_of

import resight
from resight.errors import InputError
from resight.tuning.candidates import AUTO_CANDIDATES
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Setting


@pytest.fixture(scope="module")
def data():
    """Two descriptors: one tells people apart, the other is noise."""
    rng = np.random.default_rng(2)
    persons = np.tile(np.arange(36), 2)
    cameras = np.repeat(["A", "B"], 36)
    useful = rng.normal(size=(36, 20))[persons] + 0.7 * rng.normal(size=(72, 20))
    noise = rng.normal(size=(72, 30))
    return np.hstack([useful, noise]), persons, cameras


@pytest.fixture(scope="module")
def learner(data):
    X, persons, cameras = data
    train = persons < 24
    made = resight.AutoKXQDA(blocks=((20,), (10, 20)), n_repeats=1)
    return made.fit(X[train], persons[train], cameras[train])


def test_at_least_thirty_settings_are_tried_and_told(learner):
    assert len(learner.candidates_) >= 30
    first = learner.candidates_[0]
    assert {"stage", "kernel", "reg", "fusion", "map", "standard_error", "folds"} <= set(first)
    assert learner.setting_ in [
        {key: row[key] for key in learner.setting_} for row in learner.candidates_
    ]


def test_what_is_chosen_does_not_depend_on_chance(data, learner):
    X, persons, cameras = data
    train = persons < 24
    again = resight.AutoKXQDA(blocks=((20,), (10, 20)), n_repeats=1)
    again.fit(X[train], persons[train], cameras[train])
    assert again.setting_ == learner.setting_
    assert again.candidates_ == learner.candidates_


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"fusion": "kernel-mean", "weights": (1.0, 0.5)},
        {"fusion": "distance-sum", "weights": (2.0, 1.0)},
        {"xqda": 0.5, "knfst": 1.0},
        {"fusion": "kernel-mean", "knfst": 0.5},
        {"weights": (1.0, 0.0), "candidate": AUTO_CANDIDATES[12]},  # a cubic polynomial
    ],
)
def test_every_setting_is_the_same_in_features_and_in_gram_space(data, change):
    X, persons, cameras = data
    train, test = np.flatnonzero(persons < 24), np.flatnonzero(persons >= 24)
    setting = replace(Setting(AUTO_CANDIDATES[-3], (1.0, 1.0)), **change)
    made = resight.AutoKXQDA(blocks=((20,), (10, 20)), setting=setting.as_dict())
    made.fit(X[train], persons[train], cameras[train])
    space = GramSpace([X[:, :20], X[:, 20:]], [(20,), (10, 20)], "float64")
    spaces = variants_of(space, mirrored=False)["plain"]
    fold = Fold(spaces, train, test, persons[train], (cameras[train] == "B").astype(int))
    expected = fold.distances(setting)
    np.testing.assert_allclose(made.distances(X[test], X[test]), expected, atol=1e-6)
    assert made.transform(X[test]).shape == (len(test), made.n_components_)


def test_sightings_without_cameras_count_each_as_its_own(data):
    X, persons, _ = data
    made = resight.AutoKXQDA(n_repeats=1).fit(X[:, :20], persons)
    assert made.score(X[:, :20], persons) > 0.9


def test_a_chosen_model_can_be_saved(data, learner, tmp_path):
    X = data[0]
    learner.save(tmp_path / "model")
    again = resight.load(tmp_path / "model")
    np.testing.assert_array_equal(again.distances(X, X), learner.distances(X, X))
    assert again.setting_ == learner.setting_


def test_too_few_people_name_the_minimum(data):
    X, persons, cameras = data
    few = persons < 4
    with pytest.raises(InputError, match="at least 6 people"):
        resight.AutoKXQDA().fit(X[few], persons[few], cameras[few])


def test_a_budget_too_small_for_one_setting_is_refused(data):
    X, persons, cameras = data
    with pytest.raises(InputError, match="give more seconds"):
        resight.AutoKXQDA(budget=1e-9).fit(X, persons, cameras)


def test_a_budget_that_ends_the_search_early_is_said(data, monkeypatch):
    X, persons, cameras = data
    clock = itertools.count()
    monkeypatch.setattr("resight.tuning.race.time.monotonic", lambda: next(clock))
    with pytest.warns(UserWarning, match=r"the budget of 40 s was over in stage 'kernel' after 1"):
        resight.AutoKXQDA(budget=40).fit(X, persons, cameras)


@pytest.mark.parametrize(
    ("blocks", "says"), [([5, 15], "of each descriptor"), ([(5,), (2,)], "add up to 7 features")]
)
def test_blocks_that_do_not_fit_are_refused(data, blocks, says):
    with pytest.raises(InputError, match=says):
        resight.AutoKXQDA(blocks=blocks).fit(*data)


def test_a_setting_that_does_not_fit_is_refused(data, learner):
    X, persons, cameras = data
    with pytest.raises(InputError, match="2 descriptors"):
        resight.AutoKXQDA(setting=learner.setting_).fit(X, persons, cameras)
    with pytest.raises(InputError, match="setting_ of a fitted"):
        resight.AutoKXQDA(setting={"kernel": "rbf"}).fit(X, persons, cameras)
