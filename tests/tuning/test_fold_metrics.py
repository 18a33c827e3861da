from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from resight import KXQDA, XQDA, KernelNFST
from resight.learners.euclidean import Euclidean
from resight.learners.normalizer import BlockNormalizer
from resight.tuning.candidates import AUTO_CURVED, AUTO_LINEAR, KNFST_KERNEL, Candidate
from resight.tuning.fold_metrics import ONE_THREAD, Fold, threads_for
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Part, Setting

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
    return Fold(spaces, train, test, persons[train], cameras[train])


def by_hand(data, learner, columns=slice(None), blocks=(30, 40)):
    """Distances of a learner on normalised features, in units of its training distances."""
    X, persons, cameras, train, test = data
    normalizer = BlockNormalizer(blocks).fit(X[train, columns])
    rows = normalizer.transform(X[:, columns])
    learner.fit(rows[train], persons[train], cameras[train])
    own = learner.distances(rows[train], rows[train]).mean()
    return learner.distances(rows[test], rows[test]) / own


def kxqda(candidate, *weights):
    return Part("kxqda", weights or (1.0, 1.0), (candidate,))


@pytest.mark.parametrize("candidate", [*AUTO_LINEAR, *AUTO_CURVED, RBF])
def test_one_kernel_of_all_descriptors_is_plain_kxqda(data, candidate):
    found = fold_of(data).part_distances(kxqda(candidate))
    expected = by_hand(data, KXQDA(**candidate.params()))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_xqda_is_among_the_linear_candidates(data):
    found = fold_of(data).part_distances(kxqda(AUTO_LINEAR[1]))
    np.testing.assert_allclose(found, by_hand(data, XQDA()), rtol=1e-4, atol=1e-9)


def test_distances_are_added_by_weight(data):
    parts = (1.0, kxqda(RBF)), (0.5, Part("knfst", (1.0, 1.0), (KNFST_KERNEL,)))
    found = fold_of(data).distances(Setting(parts))
    expected = by_hand(data, KXQDA()) + 0.5 * by_hand(data, KernelNFST())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_what_learns_nothing_compares_normalised_vectors(data):
    euclidean = fold_of(data).part_distances(Part("euclidean", (1.0, 1.0)))
    np.testing.assert_allclose(euclidean, by_hand(data, Euclidean()), rtol=1e-6, atol=1e-9)
    X, *_, test = data
    rows = X[:, :30] / np.linalg.norm(X[:, :30], axis=1, keepdims=True)
    cosine = fold_of(data).part_distances(Part("cosine", (1.0, 0.0)))
    by_cosine = 1.0 - rows[test] @ rows[test].T
    np.testing.assert_allclose(cosine / cosine.max(), by_cosine / by_cosine.max(), atol=1e-6)


def test_a_sum_of_kernels_gives_each_descriptor_its_own(data):
    X, _, _, train, _ = data
    linear, weights = Candidate("linear", 1.0, "identity", 1e-7), (1.0, 3.0)
    found = fold_of(data).part_distances(Part("kxqda", weights, (RBF, linear)))
    rows = BlockNormalizer((30, 40)).fit(X[train]).transform(X)
    first, second = rows[train][:, :30], rows[train][:, 30:]
    gamma = 1.0 / ((first[:, None] - first[None]) ** 2).sum(axis=2).mean()

    def rbf(A, B):
        return np.exp(-gamma * ((A[:, None, :30] - B[None, :, :30]) ** 2).sum(axis=2))

    def spread(K):
        return K.diagonal().mean() - K.mean()

    scales = 1.0 / spread(rbf(rows[train], rows[train])), 3.0 / spread(second @ second.T)

    def kernel(A, B):
        return (scales[0] * rbf(A, B) + scales[1] * A[:, 30:] @ B[:, 30:].T) / sum(scales)

    np.testing.assert_allclose(found, by_hand(data, KXQDA(kernel=kernel)), rtol=1e-4, atol=1e-9)


def test_a_setting_survives_plain_types_and_so_does_that_of_an_older_version():
    cubic = Candidate("poly", 1.0, "kernel", 1e-3, degree=3)
    parts = (0.7, Part("kxqda", (1.0, 0.5), (cubic, RBF))), (0.3, Part("cosine", (1.0, 0.0)))
    setting = Setting(parts, "mirror")
    assert Setting.from_dict(setting.as_dict()) == setting
    assert setting.sentence(["gog", "net"]) == (
        "70% k-XQDA (poly+rbf) of gog+net, 30% cosine of gog, averaged over mirror images"
    )
    old = {**RBF.params(), "weights": [2.0, 1.0], "fusion": "kernel-mean", "variant": "plain"}
    old |= {"xqda": 0.5, "knfst": 1.0, "per_pair": False}
    assert Setting.from_dict(old).parts == (
        (1.0, Part("kxqda", (2.0, 1.0), (RBF, RBF))),
        (0.5, kxqda(AUTO_LINEAR[1], 2.0, 1.0)),
        (1.0, Part("knfst", (2.0, 1.0), (KNFST_KERNEL, KNFST_KERNEL))),
    )
    apart = Setting.from_dict({**old, "fusion": "distance-sum", "xqda": 0.0, "knfst": 0.0})
    assert [part.weights for _, part in apart.parts] == [(1.0, 0.0), (0.0, 1.0)]


def test_few_sightings_get_one_thread_and_many_what_there_was():
    def threads() -> set[int]:
        return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

    before = threads()
    with threads_for(ONE_THREAD):
        assert threads() == {1}
    with threads_for(ONE_THREAD + 1):
        assert threads() == before
    assert threads() == before
