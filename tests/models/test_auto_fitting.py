from __future__ import annotations

import numpy as np
import pytest

from resight import AutoKXQDA
from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.features.store import FeatureStore
from resight.models.auto_fitting import choose_learner
from resight.models.fitting import fit_model
from resight.models.training import Training


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
    chosen = choose_learner(AutoKXQDA(**options), training(drawn, False, True))
    assert len(chosen.candidates) >= 30
    assert chosen.mirror == (chosen.learner.setting["variant"] == "mirror")
    model = fit_model(sightings, store, "whos-star", "auto", options, calibrate=False).model
    assert model.mirror == chosen.mirror
    assert model.learner.setting_ == chosen.learner.setting
    assert model.learner.candidates_ == chosen.candidates
    features = store.ensure(sightings, "whos-star", chosen.mirror).features
    assert np.isfinite(model.distances(features, features)).all()


def test_mirror_images_alone_can_be_asked_for(drawn):
    chosen = choose_learner(AutoKXQDA(n_repeats=1), training(drawn, True), mirror=True)
    assert chosen.mirror
    assert {row["stage"] for row in chosen.candidates} == {"kernel", "members"}


def test_what_is_found_out_here_cannot_be_given(drawn):
    with pytest.raises(InputError, match="found out here"):
        choose_learner(AutoKXQDA(blocks=[[3]]), training(drawn, False))
