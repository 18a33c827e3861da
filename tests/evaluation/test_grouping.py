from __future__ import annotations

import numpy as np

from resight.evaluation.grouping import group


def frames(n_people, n_frames, seed=0, width=10):
    rng = np.random.default_rng(seed)
    persons = np.repeat(np.arange(n_people), n_frames)
    people = rng.normal(size=(n_people, width))
    X = people[persons] + 0.05 * rng.normal(size=(len(persons), width))
    order = rng.permutation(len(X))
    return X[order], persons[order]


def test_frames_of_one_person_are_joined_and_others_are_not():
    X, persons = frames(12, 6)
    codes = group(X, np.full(len(X), 20.0), cut=0.02)
    pairs = set(zip(codes.tolist(), persons.tolist(), strict=True))
    assert len(pairs) == len(set(codes.tolist())) == 12


def test_who_was_said_to_be_two_people_is_not_joined():
    X, _ = frames(1, 4)
    assert len(set(group(X, np.full(4, 20.0), 0.02).tolist())) == 1
    codes = group(X, np.full(4, 20.0), 0.02, must_differ=[(0, 3)])
    assert codes[0] != codes[3]


def test_a_chain_does_not_join_its_ends():
    X = np.arange(10.0)[:, None]
    codes = group(X, np.ones(10), cut=1.5)
    assert codes[0] == codes[1]
    assert codes[0] != codes[9]


def test_nobody_and_somebody_alone():
    assert group(np.empty((0, 3)), np.empty(0), 1.0).tolist() == []
    assert group(np.ones((1, 3)), np.ones(1), 1.0).tolist() == [0]
