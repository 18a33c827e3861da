from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

import resight
from resight import KXQDA, MLAPG, XQDA, AutoKXQDA
from resight.errors import InputError
from resight.evaluation.reliability import Reliability
from resight.learners.euclidean import Euclidean
from resight.models import calibrating
from resight.models.calibrating import (
    add_calibration,
    calibrate,
    calibrate_model,
    held_out_rankings,
    iterates,
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
    assert n == 6 * 4  # ten people a fold, divided four times
    for (learn, held), (fewer, again) in zip(asked.seen[:n], asked.seen[n:], strict=True):
        assert held == again
        assert fewer < learn
        assert (len(learn), len(fewer)) == (50, 40)


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
    first = D.argmin(axis=1)
    stated = calibration.match_probabilities(D)[np.arange(400), first]
    right = who[where == 1][first] == who[where == 0]
    assert 0.2 < right.mean() < 0.95
    assert Reliability.of(stated, right).error < 0.1
    np.fill_diagonal(D, np.inf)
    accepted = [calibration.accepts(np.delete(d, i))[0] for i, d in enumerate(D)]
    assert 0.0 < np.mean(accepted) < 0.2


@pytest.mark.parametrize("learner", [XQDA(), Euclidean(), KXQDA(kernel="chi2", reg=1e-2)])
def test_every_kind_of_learner_is_calibrated(learner):
    X, persons, cameras = sightings(24)
    X = np.abs(X)
    model = Model((), learner, normalize=False).fit(X, persons, cameras)
    assert add_calibration(model, X, persons, cameras) is None
    stated = model.calibration.match_probabilities(model.distances(X[:24], X[24:]))
    np.testing.assert_allclose(stated.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "euclidean"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gram_space_and_features_give_the_same_rankings(name):
    X, persons, cameras = sightings(30, width=100)
    spec = learner_spec(name)
    learner = spec.make(**({"n_repeats": 1} if name == "auto" else {}))
    model = Model((), learner, normalize=spec.normalize).fit(X, persons, cameras)
    gram = distances_of(model, X, persons, cameras)
    features = _model_distances(model, X, persons, cameras)
    assert gram.__code__ is not features.__code__
    fast, slow = (list(held_out_rankings(one, persons, cameras, 5)) for one in (gram, features))
    for one, other in zip(fast, slow, strict=True):
        tolerance = 1e-5 * other.distances.mean()
        np.testing.assert_allclose(one.distances, other.distances, rtol=0, atol=tolerance)


def test_gram_space_and_features_give_the_same_calibration():
    X, persons, cameras = sightings(30)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    fast = calibrate_model(model, X, persons, cameras)
    slow = calibrate(_model_distances(model, X, persons, cameras), persons, cameras)
    np.testing.assert_allclose(fast.choice, slow.choice, rtol=0.02)
    np.testing.assert_allclose(fast.tail, slow.tail, rtol=0.02)


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
    [(XQDA(), 6 * 4 * 2), (MLAPG(max_iter=2, tol=1e3), 6)],  # repeats and trend, or neither
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
    ("learner", "width", "refused"),
    [
        (KXQDA(), 40, True),
        (AutoKXQDA(n_repeats=1), 40, True),
        (XQDA(), 40, False),
        (XQDA(), 100, True),  # in the span of its rows
        (Euclidean(), 100, False),
    ],
)
def test_fits_that_would_take_hours_are_not_begun(learner, width, refused, monkeypatch):
    X, persons, cameras = sightings(24, width=width)
    model = Model((), learner).fit(X, persons, cameras)
    monkeypatch.setattr(calibrating, "SIGHTINGS_LIMIT", 47)
    said = add_calibration(model, X, persons, cameras)
    assert (model.calibration is None) == refused
    if refused:
        assert "48 training sightings are more than the 47" in said
        assert "fit on fewer people; models learned through landmarks have none either" in said


def test_saved_and_loaded_it_states_the_same_bytes(tmp_path):
    X, persons, cameras = sightings(22)
    model = Model((), KXQDA()).fit(X, persons, cameras)
    assert add_calibration(model, X, persons, cameras) is None
    model.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    assert loaded.calibration == model.calibration
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
