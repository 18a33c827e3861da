"""The model that a gallery uses: descriptors, normalisation and learner as one."""

from __future__ import annotations

import numpy as np
import pytest

import resight
from resight import KXQDA, XQDA, BlockNormalizer
from resight.descriptors import descriptor
from resight.errors import InputError
from resight.learners import kxqda
from resight.learners.euclidean import Euclidean
from resight.models.calibrating import add_calibration
from resight.models.model import Model


def sightings(n_features=30):
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(12), 2)
    X = rng.normal(size=(12, n_features))[persons] + 0.3 * rng.normal(size=(24, n_features))
    return X + 5.0, persons, np.repeat([0, 1], 12)


@pytest.fixture
def images():
    return list(np.random.default_rng(0).integers(0, 256, (4, 128, 48, 3), dtype=np.uint8))


def test_it_is_its_parts_in_a_row():
    X, persons, cameras = sightings()
    model = Model((), KXQDA()).fit(X, persons, cameras)
    rows = BlockNormalizer().fit_transform(X)
    learner = KXQDA().fit(rows, persons, cameras)
    np.testing.assert_allclose(model.embed(X), learner.transform(rows), atol=1e-9)
    np.testing.assert_allclose(
        model.distances(X[:12], X[12:]), learner.distances(rows[:12], rows[12:]), atol=1e-9
    )


def test_without_normalisation_rows_are_taken_as_they_are():
    X, persons, cameras = sightings()
    model = Model((), Euclidean(), normalize=False).fit(X, persons, cameras)
    np.testing.assert_array_equal(model.embed(X), X)


def test_images_are_described_by_all_descriptors_side_by_side(images):
    model = Model(("whos-star", "lomo-dagger"), Euclidean())
    features = model.describe(images)
    parts = [descriptor(name).transform(images) for name in ("whos-star", "lomo-dagger")]
    np.testing.assert_array_equal(features, np.hstack(parts))
    assert model.normalizer.blocks == (2960, 26960)


def test_a_model_of_vectors_describes_no_image(images):
    with pytest.raises(InputError, match="fitted on your own vectors"):
        Model((), KXQDA()).describe(images)
    assert Model((), KXQDA()).normalizer.blocks is None


def test_saved_and_loaded_it_gives_the_same_bytes(tmp_path):
    X, persons, cameras = sightings()
    for learner in (KXQDA(), XQDA(), Euclidean()):
        model = Model((), learner).fit(X, persons, cameras)
        model.save(tmp_path / "model")
        loaded = resight.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.distances(X, X), model.distances(X, X))
        assert loaded.fingerprint == model.fingerprint
        assert loaded.probability([1.0]) is None


def test_fingerprints_tell_apart_what_must_not_be_mixed():
    X, persons, cameras = sightings()

    def fingerprint(learner, data=X, **options):
        return Model((), learner, **options).fit(data, persons, cameras).fingerprint

    mine = fingerprint(KXQDA())
    assert fingerprint(KXQDA()) == mine
    others = [
        fingerprint(KXQDA(reg=1e-6)),
        fingerprint(XQDA()),
        fingerprint(KXQDA(), X[:, ::-1]),
        fingerprint(KXQDA(), X + np.eye(24, 30)),
        fingerprint(KXQDA(), normalize=False),
    ]
    assert len({mine, *others}) == 6
    names = [(), ("whos-star",), ("gog",), ("gog", "whos-star")]
    of_descriptors = {Model(names_, KXQDA()).descriptor_fingerprint for names_ in names}
    mirrored = Model(("gog",), KXQDA(), mirror=True).descriptor_fingerprint
    assert len({*of_descriptors, mirrored}) == 5


def many(n_persons=30):
    rng = np.random.default_rng(1)
    persons = np.repeat(np.arange(n_persons), 4)
    cameras = np.tile(["door", "door", "yard", "gate"], n_persons)
    X = rng.normal(size=(n_persons, 30))[persons] + 0.5 * rng.normal(size=(len(persons), 30))
    return X + 5.0, np.array([f"person {code:02d}" for code in persons]), cameras


def landmark_model(rows, persons, cameras):
    learner = KXQDA(landmarks=20, reg=1e-3, reg_form="relative")
    return Model((), learner).fit(rows, persons, cameras)


def test_people_added_to_a_saved_model_count_as_if_fitted_at_once(tmp_path, monkeypatch):
    X, persons, cameras = many()
    early = persons < "person 22"
    first = landmark_model(X[early], persons[early], cameras[early])
    assert add_calibration(first, X[early], persons[early], cameras[early]) is None
    first.save(tmp_path / "model")
    model = resight.load(tmp_path / "model")
    assert model.add_people(X[~early], persons[~early], cameras[~early]) is model
    # The first people's rows come first, so their landmarks are the same rows of the whole.
    rows = first.normalizer.transform(np.concatenate([X[early], X[~early]]))
    labels = [np.concatenate([names[early], names[~early]]) for names in (persons, cameras)]
    monkeypatch.setattr(kxqda, "landmark_rows", lambda *_: first.learner.landmarks_)
    at_once = KXQDA(**first.learner.get_params()).fit(rows, *labels)
    expected = at_once.distances(rows[:40], rows[40:])
    found = model.learner.distances(rows[:40], rows[40:])
    assert np.abs(found - expected).max() < 1e-9 * expected.max()
    np.testing.assert_array_equal(model.learner.persons_, np.unique(persons))
    np.testing.assert_array_equal(model.normalizer.mean_, first.normalizer.mean_)
    assert model.fingerprint != first.fingerprint
    assert first.probability(1.0) is not None
    assert model.probability(1.0) is None
    model.save(tmp_path / "more")
    again = resight.load(tmp_path / "more")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.distances(X[:9], X[9:]), model.distances(X[:9], X[9:]))


@pytest.mark.parametrize("learner", [KXQDA(), XQDA(), Euclidean()])
def test_people_cannot_be_added_to_a_model_that_keeps_no_sums(learner):
    X, persons, cameras = sightings()
    model = Model((), learner).fit(X, persons, cameras)
    with pytest.raises(InputError, match=rf"with landmarks.*this model has {learner}.*Fit again"):
        model.add_people(X, persons + 100, cameras)


def test_a_refused_addition_changes_nothing():
    X, persons, cameras = many()
    with pytest.raises(InputError, match="a fitted kxqda"):
        Model((), KXQDA(landmarks=20)).add_people(X, persons, cameras)
    model = landmark_model(X, persons, cameras)
    model.calibration = calibration = object()
    before = model.fingerprint
    with pytest.raises(InputError, match="30 people were learned from before"):
        model.add_people(X, persons, cameras)
    assert model.fingerprint == before
    assert model.calibration is calibration
