from __future__ import annotations

import itertools

import numpy as np
import pytest

import resight
from resight.errors import InputError
from resight.registry import learner_spec
from resight.tuning.candidates import AUTO_CURVED, KNFST_KERNEL, XQDA
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Part, Setting
from resight.tuning.sketch import shortened


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


def test_everything_that_was_tried_is_told(learner):
    assert len(learner.candidates_) >= 20
    first = learner.candidates_[0]
    assert {"stage", "learner", "kernels", "map", "standard_error", "folds", "share"} <= set(first)
    chosen = [row["learner"] for row in learner.candidates_ if row["won"]]
    assert sorted(chosen) == sorted(part["learner"] for part in learner.setting_["parts"])
    assert sum(row["share"] for row in learner.candidates_) == pytest.approx(1.0)
    assert "descriptor 1" in learner.why_


def test_what_is_chosen_does_not_depend_on_chance(data, learner):
    X, persons, cameras = data
    train = persons < 24
    again = resight.AutoKXQDA(blocks=((20,), (10, 20)), n_repeats=1)
    again.fit(X[train], persons[train], cameras[train])
    assert again.setting_ == learner.setting_
    assert again.candidates_ == learner.candidates_


@pytest.mark.parametrize(
    "part",
    [
        Part("euclidean", (1.0, 0.25)),
        Part("cosine", (0.0, 1.0)),
        Part("kxqda", (1.0, 0.5), (XQDA,)),
        Part("kxqda", (1.0, 0.5), (XQDA, AUTO_CURVED[0])),
        Part("knfst", (1.0, 0.0), (KNFST_KERNEL,)),
    ],
    ids=lambda part: part.learner,
)
def test_every_part_is_the_same_in_features_and_in_gram_space(data, part):
    X, persons, cameras = data
    train, test = np.flatnonzero(persons < 24), np.flatnonzero(persons >= 24)
    setting = Setting(((0.75, part), (0.25, Part("euclidean", (0.0, 1.0)))))
    made = resight.AutoKXQDA(blocks=((20,), (10, 20)), setting=setting.as_dict())
    made.fit(X[train], persons[train], cameras[train])
    spaces = GramSpace([X[:, :20], X[:, 20:]], [(20,), (10, 20)], "float64").descriptors()
    fold = Fold(spaces, train, test, persons[train], (cameras[train] == "B").astype(int))
    expected = fold.distances(setting)
    np.testing.assert_allclose(made.distances(X[test], X[test]), expected, atol=1e-6)
    assert made.transform(X[test]).shape == (len(test), made.n_components_)


def long_vectors():
    """Vectors of 8 people in two cameras that are longer than what mixtures shorten them to."""
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(8), 2), np.repeat([0, 1], 8)
    return rng.normal(size=(8, 5000))[persons] + rng.normal(size=(16, 5000)), persons, cameras


def test_long_vectors_are_shortened_alike_in_features_and_in_gram_space():
    X, persons, cameras = long_vectors()
    parts = Part("euclidean", (1.0,)), Part("kxqda", (1.0,), (XQDA,))
    setting = Setting(tuple((0.5, part) for part in parts))
    made = resight.AutoKXQDA(blocks=[(2000, 3000)], setting=setting.as_dict())
    made.fit(X, persons, cameras)
    space = GramSpace([X], [(2000, 3000)], "float64")
    rows = np.arange(16)
    expected = Fold(space.descriptors(), rows, rows, persons, cameras).distances(setting)
    np.testing.assert_allclose(made.distances(X, X), expected, atol=1e-6)
    assert made.n_components_ < 2048 + 16


def test_where_nothing_is_learned_vectors_are_compared_at_full_length(tmp_path):
    X, persons, cameras = long_vectors()
    made = resight.AutoKXQDA(blocks=[(2000, 3000)])
    with pytest.warns(UserWarning, match="by their Euclidean distance; label 8 more"):
        made.fit(X, persons, cameras)
    assert made.candidates_ == []
    rows = resight.BlockNormalizer((2000, 3000)).fit_transform(X)
    plain = learner_spec("euclidean").make().fit(rows, persons, cameras).distances(rows, rows)
    found = made.distances(X, X)
    np.testing.assert_allclose(found, plain / plain.mean(), rtol=1e-9, atol=1e-9)
    everybody = np.arange(16)
    space = GramSpace([X], [(2000, 3000)], "float64")
    fold = Fold(space.descriptors(), everybody, everybody, persons, cameras)
    in_gram_space = fold.distances(Setting.from_dict(made.setting_))
    np.testing.assert_allclose(in_gram_space, found, rtol=1e-9, atol=1e-9)
    made.save(tmp_path / "model")
    np.testing.assert_array_equal(resight.load(tmp_path / "model").distances(X, X), found)
    shares = made.plain_shares(rows[:1] - rows[1:2], 0)
    assert shares.sum() == pytest.approx(found[0, 1])


def test_models_that_shortened_what_is_not_learned_measure_as_they_did():
    X, persons, cameras = long_vectors()
    with pytest.warns(UserWarning, match="too few"):
        made = resight.AutoKXQDA().fit(X, persons, cameras)
    del made.kernels_[0]["whole"]  # as versions before wrote it
    short = shortened(resight.BlockNormalizer((5000,)).fit_transform(X))
    np.testing.assert_allclose(made.transform(X), made.coefs_[0] * short, atol=1e-12)
    shares = made.plain_shares(made.X_fit_[:1] - made.X_fit_[1:2], 0)
    assert shares.sum() == pytest.approx(made.distances(X[:1], X[1:2])[0, 0])


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


@pytest.mark.parametrize("people", [1, 2, 15])
def test_too_few_people_to_choose_are_compared_without_learning(data, people):
    X, persons, cameras = data
    few = persons < people
    made = resight.AutoKXQDA(blocks=((20,), (30,)))
    with pytest.warns(UserWarning, match=f"{people} people seen by two cameras are too few"):
        made.fit(X[few], persons[few], cameras[few])
    assert [part["kernels"] for part in made.setting_["parts"]] == [[]]
    assert np.isfinite(made.distances(X, X)).all()


def test_people_of_one_camera_teach_nothing_and_do_no_harm(data):
    X, persons, cameras = data
    alone = (persons >= 30) & (cameras == "B")
    made = resight.AutoKXQDA(n_repeats=1).fit(X[~alone], persons[~alone], cameras[~alone])
    assert made.score(X, persons, cameras) > 0.5


def test_a_budget_of_zero_takes_the_mixture_for_that_many_people(data):
    X, persons, cameras = data
    with pytest.warns(UserWarning, match="the budget of 0 s was over after 0 metrics"):
        made = resight.AutoKXQDA(budget=0).fit(X, persons, cameras)
    assert [part["learner"] for part in made.setting_["parts"]] == ["euclidean", "kxqda"]


def test_when_the_budget_ends_the_best_mixture_so_far_is_fitted(data, monkeypatch):
    X, persons, cameras = data
    clock = itertools.count()
    monkeypatch.setattr("resight.tuning.search.time.monotonic", lambda: next(clock))
    with pytest.warns(UserWarning, match=r"the budget of 60 s was over after \d metrics"):
        made = resight.AutoKXQDA(budget=60).fit(X, persons, cameras)
    assert 0 < len(made.candidates_) < 9
    assert made.setting_["parts"]


def test_of_too_many_sightings_some_people_are_learned_from(data, monkeypatch):
    X, persons, cameras = data
    monkeypatch.setattr("resight.tuning.auto.AUTO_ROWS", 40)
    with pytest.warns(UserWarning, match="20 of 36 people \\(40 of 72 sightings\\)"):
        made = resight.AutoKXQDA(n_repeats=1).fit(X, persons, cameras)
    assert len(made.X_fit_) == 40


def test_constant_vectors_are_refused(data):
    X, persons, cameras = data
    with pytest.raises(InputError, match="the same features"):
        resight.AutoKXQDA().fit(np.ones_like(X), persons, cameras)


def test_a_descriptor_whose_vectors_are_all_equal_does_no_harm(data):
    X, persons, cameras = data
    held = persons >= 24
    both = np.hstack([X[:, :20], np.full((len(X), 30), 3.0)])
    scores = []
    for given, blocks in ((X[:, :20], ((20,),)), (both, ((20,), (30,)))):
        made = resight.AutoKXQDA(blocks=blocks, n_repeats=1)
        made.fit(given[~held], persons[~held], cameras[~held])
        scores.append(made.score(given[held], persons[held], cameras[held]))
    assert scores[1] >= scores[0] - 0.05


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
