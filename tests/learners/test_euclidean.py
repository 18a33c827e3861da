"""The baseline that learns nothing."""

from __future__ import annotations

import numpy as np

import resight
from resight.learners.euclidean import Euclidean


def test_distances_are_those_of_the_features(sample, tmp_path):
    data = sample()
    learner = Euclidean().fit(data.X, data.persons, data.cameras)
    expected = ((data.X[:4, None] - data.X[None, 4:]) ** 2).sum(axis=2)
    np.testing.assert_allclose(learner.distances(data.X[:4], data.X[4:]), expected, rtol=1e-10)
    np.testing.assert_array_equal(learner.transform(data.X), data.X)
    learner.save(tmp_path / "model")
    loaded = resight.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(data.X), data.X)
