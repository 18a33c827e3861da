"""The contract that all learners share: validation, all-or-nothing fits, fingerprints."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners._base import MetricLearner, encode_cameras, squared_euclidean
from resight.learners.euclidean import Euclidean


class Fussy(MetricLearner):
    """Fails half-way when told to."""

    def __init__(self, *, fail=False):
        self.fail = fail

    def _fit(self, X, persons, cameras):
        self.half_ = "changed"
        self.n_components_ = X.shape[1]
        if self.fail:
            raise InputError("half-way")

    def _embed(self, X):
        return X


@pytest.fixture
def data(sample):
    return sample()


def test_an_error_in_the_middle_of_a_fit_leaves_nothing_behind(data):
    learner = Fussy(fail=True)
    with pytest.raises(InputError, match="half-way"):
        learner.fit(data.X, data.persons)
    assert set(vars(learner)) == {"fail"}
    learner.set_params(fail=False).fit(data.X, data.persons)
    before = dict(vars(learner))
    learner.set_params(fail=True)
    with pytest.raises(InputError, match="half-way"):
        learner.fit(data.X[:, :2], data.persons)
    assert {**vars(learner), "fail": False} == before


def test_a_second_fit_forgets_the_first(data):
    learner = Fussy().fit(data.X, data.persons)
    learner.learned_by_someone_ = 1
    learner.fit(data.X[:, :3], data.persons)
    assert not hasattr(learner, "learned_by_someone_")
    assert learner.n_features_in_ == 3


@pytest.mark.parametrize(
    "changed", ["features", "order of features", "persons", "cameras", "no cameras"]
)
def test_the_fingerprint_tells_training_sets_apart(data, changed):
    X, persons, cameras = data.X.copy(), data.persons.copy(), data.cameras.copy()
    mine = Euclidean().fit(X, persons, cameras).training_fingerprint_
    assert Euclidean().fit(X, persons, cameras).training_fingerprint_ == mine
    if changed == "features":
        X[0, 0] += 1e-6
    elif changed == "order of features":
        X = X[:, ::-1]
    elif changed == "persons":
        persons[0] = (persons[0] + 1) % 3
    elif changed == "cameras":
        cameras[0] = 1 - cameras[0]
    else:
        cameras = None
    assert Euclidean().fit(X, persons, cameras).training_fingerprint_ != mine


def test_cameras_may_be_names_or_numbers():
    np.testing.assert_array_equal(encode_cameras(["yard", "door", "yard"], 3), [1, 0, 1])
    np.testing.assert_array_equal(encode_cameras([7, 7, -2], 3), [1, 1, 0])
    assert encode_cameras(None, 3) is None


@pytest.mark.parametrize(
    "cameras", [[1.0, np.nan], ["a", None], np.array([1, "a"], dtype=object), [None, None]]
)
def test_missing_or_mixed_cameras_are_refused(cameras):
    with pytest.raises(InputError, match="leave out sightings whose label is missing"):
        encode_cameras(cameras, 2)


def test_cameras_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"shape \(1, 2\).*one camera for each row"):
        encode_cameras([[0, 1]], 2)


def test_squared_distances_far_from_the_origin():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 5, 3))
    expected = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_euclidean(A + 1e6, B + 1e6), expected, rtol=1e-6)
    assert squared_euclidean(A, A).min() >= 0
    assert squared_euclidean(A, B[:0]).shape == (5, 0)
