"""Models of a user's own vectors: fitted from a file, on the rows that may teach."""

from __future__ import annotations

import json

import numpy as np
import pytest

import resight
from resight.cli import main
from resight.errors import InputError
from resight.features.vectors import load_vectors
from resight.models.model import Model

CODES = np.tile(np.arange(24), 2)
ROLES = np.where(CODES < 22, "", "junk")


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(24, 9))[CODES] + 0.3 * rng.normal(size=(48, 9)) + 3.0
    np.savez(
        tmp_path / "own.npz",
        features=vectors,
        persons=CODES,
        cameras=np.repeat(["A", "B"], 24),
        roles=ROLES,
    )
    return tmp_path / "own.npz"


def test_a_file_of_vectors_makes_a_model(file, tmp_path, capsys):
    words = ["fit", "--features", str(file), "--learner", "xqda", "--out", str(tmp_path / "model")]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["people"], facts["sightings"], facts["calibrated"]) == (22, 44, True)
    model = resight.load(tmp_path / "model")
    features, sightings = load_vectors(file)
    X, may = features.features, ROLES == ""
    expected = Model((), resight.XQDA()).fit(X[may], sightings.persons[may], sightings.cameras[may])
    np.testing.assert_allclose(model.distances(X, X), expected.distances(X, X), atol=1e-9)
    assert resight.fit(features=file, learner="xqda", jobs=1).fingerprint == model.fingerprint


@pytest.mark.parametrize("params", [{"landmarks": 6}, {"kernel": "chi2"}])
def test_every_way_of_fitting_takes_them(file, tmp_path, params):
    model = resight.fit(
        features=file, learner="kxqda", params=params, calibrate=False, jobs=1, store=tmp_path
    )
    features = load_vectors(file)[0].features
    assert np.isfinite(model.embed(np.abs(features))).all()


def test_what_does_not_belong_together_is_refused(file):
    with pytest.raises(InputError, match="nothing to fit: give sightings"):
        resight.fit()
    features, sightings = load_vectors(file)
    with pytest.raises(InputError, match="48 vectors, but 3 sightings"):
        resight.fit(sightings.select(np.arange(3)), features=features)
