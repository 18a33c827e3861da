"""The cross-camera graph against pairs listed one by one."""

from __future__ import annotations

import numpy as np
import pytest

from resight.errors import InputError
from resight.learners._laplacian import CrossCameraPairs


def listed(persons, cameras):
    """Laplacians of similar and dissimilar pairs, and their numbers, from a loop over pairs."""
    n = len(persons)
    laplacians, counts = np.zeros((2, n, n)), [0, 0]
    for i in range(n):
        for j in range(i):
            if cameras is None or cameras[i] != cameras[j]:
                kind = 0 if persons[i] == persons[j] else 1
                e = np.zeros(n)
                e[i], e[j] = 1.0, -1.0
                laplacians[kind] += np.outer(e, e)
                counts[kind] += 1
    return laplacians[0], laplacians[1], counts[0], counts[1]


def draw(seed, n_cameras, n_persons=9, most=3):
    """Unequal counts, some persons in one camera only, shuffled; codes without gaps."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most + 1, size=(n_persons, n_cameras))
    counts[0] = 1 + rng.integers(0, most, n_cameras)
    counts[1, 1:] = 0
    counts[1, 0] = 2
    who, where = np.indices(counts.shape)
    persons, cameras = np.repeat(who, counts.ravel()), np.repeat(where, counts.ravel())
    order = rng.permutation(len(persons))
    return np.unique(persons[order], return_inverse=True)[1], cameras[order]


@pytest.mark.parametrize("n_cameras", [2, 3, 5, None])
@pytest.mark.parametrize("seed", range(3))
def test_the_two_forms_equal_pairs_listed_one_by_one(n_cameras, seed):
    persons, cameras = draw(seed, n_cameras or 4)
    if n_cameras is None:
        cameras = None
    similar, dissimilar, n_similar, n_dissimilar = listed(persons, cameras)
    pairs = CrossCameraPairs(persons, cameras)
    assert (pairs.n_similar, pairs.n_dissimilar) == (n_similar, n_dissimilar)
    X = np.random.default_rng(seed).normal(size=(len(persons), 7))
    for form, expected in (
        (X.T @ pairs.mean_similar(X), X.T @ similar @ X / n_similar),
        (X.T @ pairs.mean_dissimilar(X), X.T @ dissimilar @ X / n_dissimilar),
    ):
        assert np.abs(form - expected).max() < 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(pairs.similar.apply(np.eye(len(similar))), similar, atol=1e-14)
    np.testing.assert_allclose(
        pairs.everything.apply(np.eye(len(similar))), similar + dissimilar, atol=1e-14
    )


def test_a_large_constant_does_not_drown_the_differences():
    persons, cameras = draw(0, 2)
    pairs = CrossCameraPairs(persons, cameras)
    X = np.random.default_rng(0).integers(0, 9, size=(len(persons), 3)).astype(float)
    shifted = pairs.mean_dissimilar(X + 2.0**45)
    np.testing.assert_allclose(shifted, pairs.mean_dissimilar(X), atol=1e-12)


@pytest.mark.parametrize("n_cameras", [2, 3, 5, None])
def test_covariances_equal_pairs_listed_one_by_one(n_cameras):
    persons, cameras = draw(0, n_cameras or 4)
    if n_cameras is None:
        cameras = None
    # far from the origin, where nothing may cancel
    X = np.random.default_rng(0).normal(size=(len(persons), 9)) + 50.0
    similar, dissimilar, n_similar, n_dissimilar = listed(persons, cameras)
    expected = X.T @ similar @ X / n_similar, X.T @ dissimilar @ X / n_dissimilar
    found = CrossCameraPairs(persons, cameras).covariances(X)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.abs(np.tril(ours - theirs)).max() < 1e-12 * np.abs(theirs).max()


@pytest.mark.parametrize(
    ("persons", "cameras", "message"),
    [
        ([0, 1, 0, 1], [0, 0, 0, 0], "one camera.*at least two cameras"),
        ([0, 1, 0, 1], [0, 1, 0, 1], "no person is seen by two cameras"),
        ([0, 0, 0, 0], [0, 1, 0, 1], "at least two persons"),
        ([0, 1, 2, 3], None, "no similar pairs"),
    ],
)
def test_labels_without_pairs_are_refused(persons, cameras, message):
    with pytest.raises(InputError, match=message):
        CrossCameraPairs(np.array(persons), None if cameras is None else np.array(cameras))
