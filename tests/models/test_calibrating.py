from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import resight
from resight import KXQDA, MLAPG, XQDA, AutoKXQDA
from resight.errors import InputError
from resight.evaluation.calibration import Calibration
from resight.evaluation.statistics import scores
from resight.experiments.confidence import state
from resight.learners.euclidean import Euclidean
from resight.models import calibrating
from resight.models.calibrating import (
    add_calibration,
    calibrate,
    calibrate_model,
    calibrate_on_new,
    held_out_rankings,
    iterates,
    seen_range,
)
from resight.models.held_out_distances import _model_distances, distances_of, unfitted
from resight.models.model import Model
from resight.registry import LEARNERS, learner_spec


def sightings(n_people, seed=0, noise=1.6, shots=1, width=40):
    """People as points, seen by two cameras of which one turns them."""
    rng = np.random.default_rng(seed)
    persons = np.tile(np.arange(n_people), 2 * shots)
    cameras = np.repeat([0, 1], n_people * shots)
    world = np.random.default_rng(100)
    away = np.linalg.qr(world.normal(size=(width, width)))[0][:40]
    turned = np.stack([np.eye(40, width), away])
    who = rng.normal(size=(n_people, 40)) * np.linspace(2.0, 0.2, 40)
    X = np.einsum("ij,ijk->ik", who[persons], turned[cameras])
    return X + noise * 0.3 * rng.normal(size=X.shape), persons, cameras


def recorded(persons):
    """Distances of chance that remember whom they were learned from and whom they rank."""

    def distances(learn, held):
        distances.seen.append((set(persons[learn].tolist()), set(persons[held].tolist())))
        return np.random.default_rng(len(learn)).uniform(size=(len(held), len(held)))

    distances.seen = []
    return distances


def test_nobody_is_ranked_by_a_metric_that_knows_them():
    _, persons, cameras = sightings(25, shots=2)
    asked = recorded(persons)
    rankings = list(held_out_rankings(asked, persons, cameras, 5))
    assert set().union(*(held for _, held in asked.seen)) == set(range(25))
    assert not any(learn & held for learn, held in asked.seen)
    assert len(asked.seen) == 5
    for one in rankings:
        assert one.same.shape == one.distances.shape
        assert (one.same.sum(axis=1) == 1).all()  # one gallery sighting a person
        assert one.same.shape == (10, 5)


def test_the_same_people_are_ranked_again_by_metrics_that_know_one_fold_less():
    _, persons, cameras = sightings(60)
    asked = recorded(persons)
    calibrate(asked, persons, cameras)
    n = len(asked.seen) // 2
    assert n == 5 * 4  # five folds, divided four times
    for (learn, held), (fewer, again) in zip(asked.seen[:n], asked.seen[n:], strict=True):
        assert held == again
        assert fewer < learn
        assert (len(learn), len(fewer)) == (48, 36)


def test_few_people_are_divided_four_times_and_show_no_trend():
    _, persons, cameras = sightings(25)
    asked = recorded(persons)
    calibrate(asked, persons, cameras)
    assert len(asked.seen) == 4 * 5


def test_probabilities_come_true_in_a_gallery_four_times_as_large():
    X, persons, cameras = sightings(100)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    calibration = calibrate_model(model, X, persons, cameras)
    assert calibration.n_people == 100
    new, who, where = sightings(400, seed=1)
    D = model.distances(new[where == 0], new[where == 1])
    names = who[where == 0].astype(str), who[where == 1].astype(str)
    told = state(calibration, D, np.ones(D.shape, bool), *names)
    assert 0.2 < told["right"].mean() < 0.95
    for p, right in (("probability", "right"), ("half_probability", "half_right")):
        assert scores(told[p], told[right])["ece"] < 0.1
    answer, missing = told["half_answer"], told["missing"]
    assert (answer[missing] == "found").mean() < 0.2
    assert (answer[~missing] == "absent").mean() < 0.2


def test_held_out_queries_keep_the_heights_of_their_own_crops():
    X, persons, cameras = sightings(24, shots=2)
    model = Model((), XQDA()).fit(X, persons, cameras)
    heights = np.where(cameras == 0, 60, 128) + (persons >= 12)
    assert add_calibration(model, X, persons, cameras, heights) is None
    made = model.calibration
    np.testing.assert_array_equal(made.heights, heights[made.rows])
    np.testing.assert_array_equal(made.heights < 100, made.cameras == "0")
    assert set(made.groups()) > {"0", "1"}
    assert add_calibration(model, X, persons, cameras) is None
    assert set(model.calibration.groups()) == {"0", "1"}  # without heights


@pytest.mark.parametrize("learner", [XQDA(), Euclidean(), KXQDA(kernel="chi2", reg=1e-2)])
def test_every_kind_of_learner_is_calibrated(learner):
    X, persons, cameras = sightings(24)
    X = np.abs(X)
    model = Model((), learner, normalize=False).fit(X, persons, cameras)
    assert add_calibration(model, X, persons, cameras) is None
    assert model.calibration.decides
    stated = model.calibration.shares(model.distances(X[:24], X[24:]))
    np.testing.assert_allclose(stated.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "euclidean"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gram_space_and_features_give_the_same_rankings(name):
    X, persons, cameras = sightings(30, width=100)
    spec = learner_spec(name)
    learner = spec.make(**({"n_repeats": 1} if name == "auto" else {}))
    model = Model((), learner, normalize=spec.normalize).fit(X, persons, cameras)
    gram = distances_of(model, X, persons, cameras)
    features = _model_distances(model, learner, X, persons, cameras)
    assert gram.__code__ is not features.__code__
    fast, slow = (list(held_out_rankings(one, persons, cameras, 5)) for one in (gram, features))
    for one, other in zip(fast, slow, strict=True):
        tolerance = 1e-5 * other.distances.mean()
        np.testing.assert_allclose(one.distances, other.distances, rtol=0, atol=tolerance)


def test_gram_space_and_features_give_the_same_calibration():
    X, persons, cameras = sightings(30)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    fast = calibrate_model(model, X, persons, cameras)
    slow = calibrate(_model_distances(model, model.learner, X, persons, cameras), persons, cameras)
    np.testing.assert_allclose(fast.choice, slow.choice, rtol=0.02)
    np.testing.assert_allclose(fast.mates, slow.mates, rtol=0.02, atol=1e-3)


def test_a_chosen_setting_is_not_chosen_again():
    X, persons, cameras = sightings(24)
    learner = AutoKXQDA(n_repeats=1).fit(X, persons, cameras)
    again = unfitted(learner)
    assert again.setting == learner.setting_
    assert not hasattr(again, "setting_")
    assert again.fit(X, persons, cameras).candidates_ == []


def test_learners_that_iterate_are_those_of_the_registry():
    for spec in LEARNERS.values():
        assert iterates(spec.make()) == (spec.effort > 0)


@pytest.mark.parametrize(
    ("learner", "fits"),
    [(XQDA(), 5 * 4 * 2), (MLAPG(max_iter=2, tol=1e3), 5)],  # repeats and trend, or neither
)
def test_progress_counts_all_fits_and_learners_that_iterate_have_few(learner, fits, monkeypatch):
    X, persons, cameras = sightings(60)
    model = Model((), learner).fit(X, persons, cameras)
    shown = []

    @contextmanager
    def bar(title, total):
        shown.append((title, total))
        yield shown.append

    monkeypatch.setattr(calibrating, "progress", bar)
    calibrate_model(model, X, persons, cameras)
    assert shown == [("calibration", fits)] + [1] * fits


@pytest.mark.parametrize(
    ("learner", "width", "some"),
    [
        (KXQDA(), 40, True),
        (KXQDA(landmarks=20), 40, True),
        (XQDA(), 40, False),
        (XQDA(), 100, True),  # in the span of its rows
        (Euclidean(), 100, False),
    ],
)
def test_of_many_sightings_a_part_of_the_people_is_learned_from(learner, width, some, monkeypatch):
    X, persons, cameras = sightings(48, width=width)
    model = Model((), learner).fit(X, persons, cameras)
    monkeypatch.setattr(calibrating, "SIGHTINGS_LIMIT", 48)
    assert add_calibration(model, X, persons, cameras) is None
    assert (model.calibration.n_people < 40) == some
    assert model.calibration.knows(model.embed(X).astype(np.float32)).all()


def test_new_people_calibrate_the_model_that_does_not_know_them_yet():
    X, persons, cameras = sightings(60)
    known = persons < 36
    model = Model((), KXQDA(landmarks=20)).fit(X[known], persons[known], cameras[known])
    made, why_not = calibrate_on_new(model, X[~known], persons[~known], cameras[~known])
    assert why_not is None
    assert made.n_people == 24
    few = persons >= 50
    assert "label 10 more" in calibrate_on_new(model, X[few], persons[few], cameras[few])[1]


def test_saved_and_loaded_it_states_the_same_bytes(tmp_path):
    X, persons, cameras = sightings(22)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    assert add_calibration(model, X, persons, cameras) is None
    model.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    for name, value in vars(model.calibration).items():
        np.testing.assert_array_equal(getattr(loaded.calibration, name), value)
    D = model.distances(X, X)
    np.testing.assert_array_equal(loaded.probability(D), model.probability(D))


def test_too_few_people_are_refused_or_noted_with_the_number_needed():
    X, persons, cameras = sightings(19)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    with pytest.raises(InputError, match="at least 20 people seen by two cameras, there are 19"):
        calibrate_model(model, X, persons, cameras)
    assert "label 1 more" in str(add_calibration(model, X, persons, cameras))
    assert model.calibration is None


def test_cameras_that_share_nobody_enough_are_refused():
    persons = np.repeat(np.arange(24), 2)
    cameras = np.arange(48)  # every sighting by a camera of its own
    with pytest.raises(InputError, match="no two cameras share"):
        calibrate(lambda learn, held: np.ones((len(held), len(held))), persons, cameras)


def test_pictures_of_another_kind_are_outside_of_what_was_seen():
    rng = np.random.default_rng(0)
    people, others = rng.normal(size=(2, 6, 300))

    def pictures(n, kind):
        return 5.0 + rng.normal(size=(n, 6)) @ kind + rng.normal(size=(n, 300))

    known = replace(
        Calibration((0.0, 1.0), (2.0, 1.0, 0.0), 20), **seen_range(pictures(200, people))
    )
    assert known.basis.shape == (20, 300)
    np.testing.assert_allclose(known.basis @ known.basis.T, np.eye(20), atol=1e-4)
    assert known.outside(pictures(200, people)).mean() < 0.05
    assert known.outside(pictures(200, others)).mean() > 0.95
    assert known.outside(5.0 + 9.0 * (pictures(200, people) - 5.0)).all()  # the same way, but far
