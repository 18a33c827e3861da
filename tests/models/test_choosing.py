from __future__ import annotations

import numpy as np
import pytest

from resight import AutoKXQDA
from resight.datasets.synthetic import draw_cameras
from resight.features.store import FeatureStore
from resight.models.fitting import fit_model
from resight.models.training import Training, choose_auto
from resight.plans import plan_of
from resight.tuning.candidates import CV, CV_FOLDS
from resight.tuning.cross_validation import choose
from resight.tuning.gram import gram_space


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    sightings = draw_cameras(folder / "cameras", n_people=16, size=(64, 32))
    return sightings, FeatureStore(folder / "features")


def training(drawn, *mirrors):
    sightings, store = drawn
    return Training.described(
        sightings, lambda of, mirror: store.ensure(of, "whos-star", mirror), mirrors
    )


def test_what_is_chosen_is_fitted_on_the_features_it_was_chosen_for(drawn):
    sightings, store = drawn
    options = {"n_repeats": 1}
    learner, mirror, decision = choose_auto(AutoKXQDA(**options), training(drawn, False, True))
    assert len(decision.candidates) >= 9
    assert mirror == (learner.setting["variant"] == "mirror")
    fitted = fit_model(sightings, store, "whos-star", plan_of("auto", options), calibrate=False)
    model = fitted.model
    assert model.mirror == mirror
    assert model.learner.setting_ == learner.setting == fitted.decision.chosen
    assert model.learner.candidates_ == decision.candidates
    assert "settings tried on held-out training people" in fitted.decision.sentence
    features = store.ensure(sightings, "whos-star", mirror).features
    assert np.isfinite(model.distances(features, features)).all()


def test_a_budget_that_ends_early_is_said_with_what_was_chosen(drawn):
    for budget in (0, 0.02):
        plan = plan_of("auto", {"budget": budget})
        decision = fit_model(*drawn, "whos-star", plan, calibrate=False).decision
        assert f"the budget of {budget} s was over" in decision.sentence


def test_cross_validation_chooses_before_a_fit_as_in_an_evaluation(drawn):
    sightings, store = drawn
    fitted = fit_model(*drawn, "whos-star", plan_of("kxqda:cv", {}), calibrate=False)
    chosen = fitted.decision.chosen
    assert chosen.items() <= fitted.model.learner.get_params().items()
    space = gram_space(store.ensure(sightings, "whos-star"))
    rows = np.arange(len(sightings))
    expected = choose(space, rows, sightings.persons, sightings.cameras, CV, CV_FOLDS)
    assert chosen == expected.chosen
    assert len(fitted.decision.candidates) == len(CV)


def test_mirror_images_alone_can_be_asked_for(drawn):
    _, mirror, decision = choose_auto(AutoKXQDA(n_repeats=1), training(drawn, True), mirror=True)
    assert mirror
    plain = choose_auto(AutoKXQDA(n_repeats=1), training(drawn, False, True))[2]
    assert len(decision.candidates) < len(plain.candidates)  # nothing to compare it with
