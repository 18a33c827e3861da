from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from resight import KXQDA, XQDA, KernelNFST
from resight.learners.normalizer import BlockNormalizer
from resight.tuning.candidates import AUTO_CANDIDATES, Candidate
from resight.tuning.fold_metrics import Fold, camera_pairs
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Setting

RBF = Candidate("rbf", 1.0, "identity", 1e-7)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    persons, cameras = np.tile(np.arange(60), 3), np.repeat(np.arange(3), 60)
    X = rng.normal(size=(60, 70))[persons] + 0.8 * rng.normal(size=(180, 70))
    return X, persons, cameras, np.flatnonzero(persons < 36), np.flatnonzero(persons >= 36)


def fold_of(data):
    X, persons, cameras, train, test = data
    spaces = GramSpace([X[:, :30], X[:, 30:]], None, "float64").descriptors()
    return Fold(spaces, train, test, persons[train], cameras[train], cameras[test])


def by_hand(data, learner, columns=slice(None), blocks=(30, 40)):
    """Distances of a learner on normalised features, in units of its training distances."""
    X, persons, cameras, train, test = data
    normalizer = BlockNormalizer(blocks).fit(X[train, columns])
    rows = normalizer.transform(X[:, columns])
    learner.fit(rows[train], persons[train], cameras[train])
    own = learner.distances(rows[train], rows[train]).mean()
    return learner.distances(rows[test], rows[test]) / own


@pytest.mark.parametrize("candidate", AUTO_CANDIDATES[::4])
def test_concatenation_is_plain_kxqda(data, candidate):
    found = fold_of(data).distances(Setting(candidate, (1.0, 1.0)))
    np.testing.assert_allclose(
        found, by_hand(data, KXQDA(**candidate.params())), rtol=1e-4, atol=1e-9
    )


def test_distances_of_descriptors_are_added_by_weight(data):
    found = fold_of(data).distances(Setting(RBF, (1.0, 3.0), fusion="distance-sum"))
    first = by_hand(data, KXQDA(), slice(30), (30,))
    second = by_hand(data, KXQDA(), slice(30, None), (40,))
    np.testing.assert_allclose(found, 0.25 * first + 0.75 * second, rtol=1e-4, atol=1e-9)


def test_members_are_added_by_weight(data):
    plain = Setting(RBF, (1.0, 1.0))
    found = fold_of(data).distances(replace(plain, xqda=0.5, knfst=2.0))
    expected = by_hand(data, KXQDA()) + 0.5 * by_hand(data, XQDA())
    expected += 2.0 * by_hand(data, KernelNFST())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_the_mean_of_kernels_is_a_kernel(data):
    X, _, _, train, _ = data
    found = fold_of(data).distances(Setting(RBF, (1.0, 3.0), fusion="kernel-mean"))
    rows = BlockNormalizer((30, 40)).fit(X[train]).transform(X)

    def kernel(A, B):
        total = 0.0
        for columns, weight in ((slice(30), 0.25), (slice(30, None), 0.75)):
            own = rows[train][:, columns]
            gamma = 1.0 / ((own[:, None] - own[None]) ** 2).sum(axis=2).mean()
            squares = ((A[:, None, columns] - B[None, :, columns]) ** 2).sum(axis=2)
            total = total + weight * np.exp(-gamma * squares)
        return total

    np.testing.assert_allclose(found, by_hand(data, KXQDA(kernel=kernel)), rtol=1e-4, atol=1e-9)


def test_a_kernel_mean_of_one_descriptor_is_that_kernel(data):
    fold = fold_of(data)
    alone = Setting(RBF, (2.0, 0.0))
    np.testing.assert_allclose(
        fold.distances(replace(alone, fusion="kernel-mean")), fold.distances(alone), rtol=1e-6
    )


def test_a_metric_for_each_pair_learns_from_these_two_cameras_only(data):
    _, persons, cameras, train, test = data
    setting = Setting(RBF, (1.0, 1.0), per_pair=True)
    found = fold_of(data).distances(setting)
    spaces = fold_of(data).spaces
    for pair in ((0, 1), (0, 2), (1, 2)):
        learn, rank = (rows[np.isin(cameras[rows], pair)] for rows in (train, test))
        alone = Fold(spaces, learn, rank, persons[learn], cameras[learn])
        expected = alone.distances(replace(setting, per_pair=False))
        first = cameras[rank] == pair[0]
        place = np.searchsorted(test, rank)
        got = found[np.ix_(place[first], place[~first])]
        np.testing.assert_allclose(got, expected[np.ix_(first, ~first)], rtol=1e-8)
    np.testing.assert_allclose(found, found.T)
    shared = fold_of(data).distances(replace(setting, per_pair=False))
    same = cameras[test][:, None] == cameras[test][None, :]
    np.testing.assert_allclose(found[same], shared[same])


def test_pairs_need_twenty_people_in_common():
    persons = np.concatenate([np.arange(25), np.arange(25), np.arange(19)])
    cameras = np.repeat([0, 1, 2], [25, 25, 19])
    assert camera_pairs(persons, cameras) == [(0, 1)]


def test_a_setting_survives_plain_types():
    for candidate in AUTO_CANDIDATES:
        setting = Setting(candidate, (1.0, 0.5), "kernel-mean", "mirror", 0.5, 1.0, per_pair=True)
        assert Setting.from_dict(setting.as_dict()) == setting
