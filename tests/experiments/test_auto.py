from __future__ import annotations

import numpy as np
import pytest

import resight
from resight.errors import InputError
from resight.experiments.candidates import CV, Candidate
from resight.experiments.gram import GramSpace
from resight.experiments.search import Search, setting_distances

SOME = (Candidate("linear", 1.0, "kernel", 1e-2), Candidate("rbf", 1.0, "identity", 1e-7))


@pytest.fixture(scope="module")
def data():
    """Two descriptors: one tells people apart, the other is noise."""
    rng = np.random.default_rng(2)
    persons = np.tile(np.arange(36), 2)
    cameras = np.repeat(["A", "B"], 36)
    useful = rng.normal(size=(36, 20))[persons] + 0.7 * rng.normal(size=(72, 20))
    noise = rng.normal(size=(72, 30))
    return useful, noise, persons, cameras


def search(data, **options):
    useful, noise, persons, cameras = data
    space = GramSpace([useful, noise], precision="float64")
    rows = np.flatnonzero(persons < 24)
    return Search(space, rows, persons[rows], cameras[rows], **options)


def test_a_descriptor_of_noise_loses_its_weight(data):
    found = search(data).run(SOME)
    assert found.weights[1] < found.weights[0]


def test_the_choice_is_reproducible_and_complete(data):
    first, second = search(data, seed=3), search(data, seed=3)
    assert first.run(SOME) == second.run(SOME)
    assert len(first.tried) >= len(SOME) + 1
    assert all(np.isfinite(one.scores).all() for one in first.tried)


def test_only_training_rows_are_looked_at(data):
    honest, blind = search(data), search(data)
    outside = np.setdiff1d(np.arange(len(data[2])), blind.rows)
    for gram in blind.space.grams:
        gram[outside] = np.nan
        gram[:, outside] = np.nan
    assert blind.run(SOME) == honest.run(SOME)


def test_a_budget_stops_the_search_but_not_before_one_setting(data):
    with pytest.raises(InputError, match="give more seconds"):
        search(data, budget=1e-9).run(SOME)


def test_too_few_people_name_the_minimum(data):
    useful, _, persons, cameras = data
    rows = np.flatnonzero(persons < 4)
    with pytest.raises(InputError, match="at least 6 people"):
        Search(GramSpace([useful]), rows, persons[rows], cameras[rows])


def test_the_learner_equals_its_setting_in_gram_space(data):
    useful, noise, persons, cameras = data
    X = np.hstack([useful, noise])
    train, test = np.flatnonzero(persons < 24), np.flatnonzero(persons >= 24)
    learner = resight.AutoKXQDA(blocks=((20,), (30,)), n_repeats=1)
    learner.fit(X[train], persons[train], cameras[train])
    space = GramSpace([useful, noise], precision="float64")
    chosen = Search(space, train, persons[train], cameras[train], n_repeats=1).run(CV)
    assert learner.setting_ == chosen.as_dict()
    plain = setting_distances(chosen, space, train, test, persons[train], cameras[train])
    own = learner.distances(X[test], X[test])
    if len(learner.members_) == 1:  # several are added in units of their own training distances
        np.testing.assert_allclose(own / own.mean(), plain / plain.mean(), atol=1e-6)
    assert len(learner.candidates_) >= 30
    assert learner.transform(X[test]).shape == (len(test), learner.n_components_)


def test_a_chosen_model_can_be_saved(data, tmp_path):
    useful, _, persons, cameras = data
    learner = resight.AutoKXQDA(n_repeats=1).fit(useful, persons, cameras)
    learner.save(tmp_path / "model")
    again = resight.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.distances(useful, useful), learner.distances(useful, useful)
    )
