"""Landmarks are spread over people and cameras; their features reproduce the kernel."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.kernels import Kernel
from resight.learners._landmarks import (
    OVERSAMPLING,
    landmark_map,
    landmark_rows,
    nystrom_map,
    spread_rows,
)


def labels(n_persons, counts, seed=0):
    """Every person `counts[v]` times in camera v, in random order."""
    persons = np.repeat(np.arange(n_persons), sum(counts))
    cameras = np.tile(np.repeat(np.arange(len(counts)), counts), n_persons)
    order = np.random.default_rng(seed).permutation(len(persons))
    return persons[order], cameras[order]


def test_every_person_comes_before_any_comes_twice():
    persons, cameras = labels(30, (3, 2, 1))
    rows = spread_rows(persons, cameras, 30, seed=1)
    assert sorted(persons[rows]) == list(range(30))
    half = spread_rows(persons, cameras, 15, seed=1)
    assert len(set(persons[half])) == 15


def test_every_camera_of_a_person_comes_before_a_second_sighting_by_one():
    persons, cameras = labels(30, (3, 2, 1))
    rows = spread_rows(persons, cameras, 90, seed=1)
    cells = set(zip(persons[rows].tolist(), cameras[rows].tolist(), strict=True))
    assert len(cells) == 90


@pytest.mark.parametrize("n_landmarks", [9, 20, 60])
def test_cameras_take_turns(n_landmarks):
    persons, cameras = labels(60, (8, 1, 1))  # by chance the first camera would get most
    rows = spread_rows(persons, cameras, n_landmarks, seed=1)
    counts = np.bincount(cameras[rows], minlength=3)
    assert counts.min() > 0
    if n_landmarks < 20:
        assert counts.max() - counts.min() <= 1


def test_the_choice_repeats_itself_and_depends_on_the_seed():
    persons, cameras = labels(20, (2, 2))
    first = spread_rows(persons, cameras, 10, seed=0)
    np.testing.assert_array_equal(first, spread_rows(persons, cameras, 10, seed=0))
    assert not np.array_equal(first, spread_rows(persons, cameras, 10, seed=1))
    assert (np.diff(first) > 0).all()


def test_without_cameras_people_still_take_turns():
    persons, _ = labels(20, (2, 2))
    rows = spread_rows(persons, None, 40, seed=0)
    assert (np.bincount(persons[rows]) == 2).all()


def test_all_rows_may_be_landmarks_but_no_more():
    persons, cameras = labels(5, (1, 1))
    np.testing.assert_array_equal(landmark_rows(persons, cameras, 10, 0), np.arange(10))
    with pytest.raises(InputError, match=r"landmarks=11, but there are only 10 .* at most 10"):
        landmark_rows(persons, cameras, 11, 0)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_products_of_features_are_the_nystrom_kernel(kernel):
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(12, 5)), rng.normal(size=(7, 5))
    function = Kernel(kernel)
    K = function.fit_matrix(Z)
    made, known = nystrom_map(K, 12)
    rows = function.rows(X, Z)
    F = made.features(rows) + made.centre
    np.testing.assert_allclose(F @ F.T, rows @ np.linalg.pinv(K, 1e-10) @ rows.T, atol=1e-8)
    np.testing.assert_allclose(known, made.features(K), atol=1e-10)
    own = known + made.centre
    np.testing.assert_allclose(own @ own.T, K, atol=1e-8 * K.max())
    np.testing.assert_allclose(made.features(K).mean(axis=0), 0, atol=1e-8)


def test_fewer_features_than_landmarks_give_the_nearest_kernel_of_that_rank():
    Z = np.random.default_rng(0).normal(size=(20, 4))
    K = Kernel("rbf").fit_matrix(Z)
    s, U = np.linalg.eigh(K)
    made, known = nystrom_map(K, 5)
    assert made.lift.shape == (20, 5)
    np.testing.assert_allclose(known, made.features(K), atol=1e-10)
    own = known + made.centre
    np.testing.assert_allclose(own @ own.T, (U[:, -5:] * s[-5:]) @ U[:, -5:].T, atol=1e-10)


def test_a_feature_takes_several_landmarks():
    persons, cameras = labels(30, (3, 2, 1))
    rows = landmark_rows(persons, cameras, 10, seed=1)
    np.testing.assert_array_equal(rows, spread_rows(persons, cameras, 10 * OVERSAMPLING, seed=1))
    assert len(landmark_rows(persons, cameras, 100, seed=1)) == len(persons)


def test_equal_landmarks_and_low_rank_lose_only_what_is_round_off():
    rng = np.random.default_rng(0)
    Z = np.repeat(rng.normal(size=(6, 3)), 2, axis=0)
    assert nystrom_map(Z @ Z.T, 12)[0].lift.shape == (12, 3)
    assert nystrom_map(Kernel("rbf").fit_matrix(Z), 12)[0].lift.shape == (12, 6)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(InputError, match="no positive eigenvalue"):
        nystrom_map(-np.eye(3), 3)


def drawn_people(n_persons=20):
    """People who differ in few of many directions, along which sightings vary little."""
    rng = np.random.default_rng(5)
    persons, cameras = np.repeat(np.arange(n_persons), 4), np.tile([0, 0, 1, 1], n_persons)
    X = np.hstack(
        [0.2 * rng.normal(size=(n_persons, 10))[persons], rng.normal(size=(len(persons), 40))]
    )
    return X, persons, cameras


@pytest.fixture
def few_features_suffice(monkeypatch):
    monkeypatch.setattr("resight.learners._landmarks.LABELS_FROM", 1)


@pytest.mark.usefixtures("few_features_suffice")
def test_features_through_labels_are_products_of_a_projection():
    X, persons, cameras = drawn_people()
    K = X @ X.T
    made, known = landmark_map(K, persons, cameras, 24)
    np.testing.assert_allclose(made.lift.T @ K @ made.lift, np.eye(24), atol=1e-8)
    np.testing.assert_allclose(known, made.features(K), atol=1e-8)
    np.testing.assert_allclose(known.mean(axis=0), 0, atol=1e-8)


@pytest.mark.usefixtures("few_features_suffice")
def test_features_through_labels_are_no_more_than_the_rank():
    """Eigenvectors take the place of the Cholesky factor, and tell what is round-off."""
    X, persons, cameras = drawn_people()
    K = X[:, :15] @ X[:, :15].T
    made, known = landmark_map(K, persons, cameras, 24)
    assert made.lift.shape == (len(K), 15)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    np.testing.assert_allclose(known @ known.T, centred, atol=1e-8)


@pytest.mark.usefixtures("few_features_suffice")
def test_labels_keep_what_tells_people_apart():
    X, persons, cameras = drawn_people()
    K = X @ X.T

    def kept(made):
        """Part of the persons' own directions that the features span."""
        return np.linalg.norm((X.T @ made.lift)[:10])

    assert kept(landmark_map(K, persons, cameras, 24)[0]) > 1.3 * kept(nystrom_map(K, 24)[0])


@pytest.mark.usefixtures("few_features_suffice")
@pytest.mark.parametrize("labels", ["none", "no pairs", "all features"])
def test_without_pairs_features_are_those_of_largest_variance(labels):
    X, persons, cameras = drawn_people()
    K = X @ X.T
    n_features = len(K) if labels == "all features" else 12
    who = None if labels == "none" else np.arange(len(K)) if labels == "no pairs" else persons
    made, expected = landmark_map(K, who, cameras, n_features), nystrom_map(K, n_features)
    np.testing.assert_array_equal(made[0].lift, expected[0].lift)
