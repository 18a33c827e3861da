from __future__ import annotations

import numpy as np
import pytest

from resight.gallery.grouping import cluster, join_close


def frames(n_people, n_frames, seed=0, width=10):
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(n_people), n_frames)
    people = rng.normal(size=(n_people, width))
    X = people[persons] + 0.05 * rng.normal(size=(len(persons), width))
    order = rng.permutation(len(X))
    return X[order], persons[order]


def odds(X, cut):
    """Positive where a squared distance is below `cut`."""
    return cut - ((X[:, None] - X[None]) ** 2).sum(axis=2)


BOTH = pytest.mark.parametrize("join", [cluster, lambda odds: join_close(odds[None] >= 0)[0]])


@BOTH
def test_frames_of_one_person_are_joined_and_others_are_not(join):
    X, persons = frames(12, 6)
    codes = join(odds(X, 0.4))
    pairs = set(zip(codes.tolist(), persons.tolist(), strict=True))
    assert len(pairs) == len(set(codes.tolist())) == 12


def test_who_was_said_to_be_two_people_is_not_joined():
    X, _ = frames(1, 4)
    assert len(set(cluster(odds(X, 0.4)).tolist())) == 1
    codes = cluster(odds(X, 0.4), [(0, 3)])
    assert codes[0] != codes[3]


@BOTH
def test_a_chain_does_not_join_its_ends(join):
    codes = join(odds(np.arange(10.0)[:, None], 1.5))
    assert codes[0] == codes[1]
    assert codes[0] != codes[9]


@BOTH
def test_nobody_and_somebody_alone(join):
    assert join(np.empty((0, 0))).tolist() == []
    assert join(np.ones((1, 1))).tolist() == [0]
