from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.experiments.evaluate import evaluate
from resight.features.store import FeatureStore
from resight.plans import Plan


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Three cameras; half of the people train, camera A asks the other two."""
    folder = tmp_path_factory.mktemp("drawn")
    sightings = draw_cameras(folder / "cameras", n_people=40, n_cameras=3, size=(64, 32))
    trained = np.isin(sightings.persons, np.unique(sightings.persons)[:24])
    first = sightings.cameras == sightings.cameras[0]
    roles = np.where(trained, "train", np.where(first, "query", "gallery"))
    return replace(sightings, roles=roles), FeatureStore(folder / "features")


def test_auto_chooses_among_mirror_images_too(drawn):
    sightings, store = drawn
    plans = [Plan("kxqda"), Plan("auto", params={"n_repeats": 1})]
    given = {"descriptor": "whos-star", "protocol": "roles", "store": store}
    found = evaluate(sightings, learner=plans, **given).document
    trial = found["runs"][1]["trials"][0]
    assert {"plain", "mirror", "learned"} == {row["stage"] for row in trial["candidates"]}
    assert trial["chosen"]["variant"] in ("plain", "mirror")
    assert found["runs"][1]["params"] == {"n_repeats": 1}
    only = evaluate(sightings, learner=plans[1:], mirror=True, **given).document
    stages = {row["stage"] for row in only["runs"][0]["trials"][0]["candidates"]}
    assert stages == {"plain", "learned"}


def test_a_tested_camera_without_labelled_people_is_refused(drawn):
    sightings, store = drawn
    last = sightings.cameras == sightings.cameras[-1]
    rest = sightings.select(np.flatnonzero(~(last & (sightings.roles == "train"))))
    with pytest.raises(InputError, match="no labelled people"):
        evaluate(
            rest, descriptor="whos-star", learner="auto", protocol="roles", mirror=True, store=store
        )


def test_parameters_of_the_estimator_alone_are_refused(drawn):
    with pytest.raises(InputError, match="in Python only"):
        evaluate(drawn[0], learner="auto", params={"auto": {"setting": {}}}, store=drawn[1])
