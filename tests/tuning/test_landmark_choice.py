"""The regulariser of landmark k-XQDA: folds of people, and choices equal to those of fits."""

from __future__ import annotations

import numpy as np
import pytest

from resight import KXQDA
from resight.errors import InputError
from resight.learners._landmark_sums import ChunkSums, add_up, pair_weights
from resight.learners._landmarks import landmark_rows
from resight.tuning.candidates import CV
from resight.tuning.cross_validation import (
    choose_regulariser,
    held_out_groups,
    held_out_map,
    regularisers,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    persons = np.repeat(np.arange(30), 4)
    cameras = np.tile([0, 0, 1, 1], 30)
    X = rng.normal(size=(30, 20))[persons] + rng.normal(size=(120, 20)) + cameras[:, None]
    return X, persons, cameras


def test_folds_hold_out_whole_people_who_can_be_ranked(data):
    _, persons, cameras = data
    alone = np.append(persons, 30), np.append(cameras, 0)
    groups = held_out_groups(*alone, n_folds=3, most=4)
    assert groups[-1] == 3  # a person of one camera always learns
    for fold in range(3):
        assert len(set(alone[0][groups == fold])) == 4
    for person in range(31):
        assert len(set(groups[alone[0] == person])) == 1
    assert (held_out_groups(persons, cameras, 3) < 3).all()  # few people: all are held out once


def test_too_few_people_to_choose(data):
    _, persons, cameras = data
    few = persons < 5
    with pytest.raises(InputError, match=r"3 folds need at least 6 people.*give reg"):
        held_out_groups(persons[few], cameras[few], 3)


def test_the_regularisers_are_those_of_the_exact_model():
    found = regularisers(KXQDA(kernel="poly", width=2.0))
    assert {(c.kernel, c.width) for c in found} == {("poly", 2.0)}
    assert {(c.reg_form, c.reg) for c in found} == {
        (c.reg_form, c.reg) for c in CV if c.kernel == "rbf" and c.width == 1.0
    }


def test_scores_are_those_of_models_fitted_without_the_held_out_people(data):
    X, persons, cameras = data
    groups = held_out_groups(persons, cameras, 3, most=6)
    learner = KXQDA(landmarks=40)
    rows = landmark_rows(persons, cameras, 40, 0)
    learner.place_landmarks(X[rows], rows, 40)
    F = learner.landmark_features(X)
    parts, held = [], []
    for group in range(4):
        of = groups == group
        weights = pair_weights(persons[of], cameras[of])
        sums = ChunkSums.of_rows(F[of], persons[of], cameras[of], weights)
        parts.append(sums.finish(np.array(["a", "b"])))
        held.append((F[of], persons[of], cameras[of]))
    decision = choose_regulariser(parts, held[:3], learner)
    assert decision.chosen in [one.params() for one in regularisers(learner)]
    for candidate, tried in zip(regularisers(learner), decision.candidates, strict=True):
        scores = []
        for fold in range(3):
            learn, test = groups != fold, groups == fold
            alone = KXQDA(landmarks=40, reg=candidate.reg, reg_form=candidate.reg_form)
            alone.place_landmarks(X[rows], rows, 40)  # the same landmarks, whoever is held out
            sums = add_up(
                lambda part, rows=X[learn], by=alone: by.landmark_features(rows[part]),
                persons[learn],
                cameras[learn],
                pair_weights(persons[learn], cameras[learn]),
            )
            alone.learn_from(sums.finish(np.array(["a", "b"])))
            E = alone._embed(X[test])
            D = ((E[:, None] - E[None]) ** 2).sum(axis=-1)
            scores.append(held_out_map(D, persons[test], cameras[test]))
        expected = {"map": np.mean(scores), "sd": np.std(scores, ddof=1)}
        assert tried == pytest.approx({**candidate.params(), **expected}, abs=1e-6)
