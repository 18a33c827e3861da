"""The model that a gallery uses: descriptors, normalisation and learner as one."""

from __future__ import annotations

import numpy as np
import pytest

import resight
from resight import KXQDA, XQDA, BlockNormalizer
from resight.descriptors import descriptor
from resight.errors import InputError
from resight.learners.euclidean import Euclidean
from resight.model import Model, blocks_of


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
    assert sum(blocks_of(("whos-star", "lomo-dagger"))) == features.shape[1]


def test_a_model_of_vectors_describes_no_image(images):
    with pytest.raises(InputError, match="vectors given by the user"):
        Model((), KXQDA()).describe(images)
    assert blocks_of(()) is None


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
