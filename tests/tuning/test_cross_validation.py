from __future__ import annotations

import numpy as np
import pytest

from resight import KXQDA, BlockNormalizer
from resight.errors import InputError
from resight.tuning.candidates import CV, CV_FOLDS, Candidate
from resight.tuning.cross_validation import choose, held_out_map, person_folds
from resight.tuning.gram import GramSpace


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    persons = np.tile(np.arange(40).astype(str), 2)
    cameras = np.repeat(["A", "B"], 40)
    codes = persons.astype(int)
    X = rng.normal(size=(40, 60))[codes] + 1.2 * rng.normal(size=(80, 60))
    return X, persons, cameras


def test_the_candidates_stay_within_what_was_announced():
    assert len(CV) <= 40
    assert CV_FOLDS == 3
    assert len(set(CV)) == len(CV)


def test_folds_share_no_person_and_cover_all(data):
    _, persons, cameras = data
    folds = person_folds(persons, cameras, 3)
    assert len(folds) == 3
    for learn, held in folds:
        assert not set(persons[learn]) & set(persons[held])
        assert len(learn) + len(held) == len(persons)
    assert sum(len(held) for _, held in folds) == len(persons)


def test_folds_do_not_depend_on_the_order_of_rows(data):
    _, persons, cameras = data
    order = np.random.default_rng(0).permutation(len(persons))
    plain = person_folds(persons, cameras, 3)
    shuffled = person_folds(persons[order], cameras[order], 3)
    for (_, held), (_, other) in zip(plain, shuffled, strict=True):
        assert set(persons[held]) == set(persons[order][other])


def test_too_few_people_name_the_minimum():
    persons, cameras = np.tile(np.arange(4), 2), np.repeat(["A", "B"], 4)
    with pytest.raises(InputError, match="at least 6 people"):
        person_folds(persons, cameras, 3)


def test_only_training_rows_are_looked_at(data):
    X, persons, cameras = data
    rows = np.flatnonzero(persons.astype(int) < 24)
    space = GramSpace([X], precision="float64")
    honest = choose(space, rows, persons[rows], cameras[rows], CV[:4], 3)
    outside = np.setdiff1d(np.arange(len(X)), rows)
    for gram in (block.gram for block in space.blocks):
        gram[outside] = np.nan
        gram[:, outside] = np.nan
    blind = choose(space, rows, persons[rows], cameras[rows], CV[:4], 3)
    assert blind == honest


def test_polynomials_of_different_degrees_are_different_candidates(data):
    X, persons, cameras = data
    space, rows = GramSpace([X], precision="float64"), np.arange(len(X))
    square = Candidate("poly", 1.0, "kernel", 1e-2)
    cubic = Candidate("poly", 1.0, "kernel", 1e-2, degree=3)
    together = choose(space, rows, persons, cameras, (square, cubic), 3)
    alone = choose(space, rows, persons, cameras, (cubic,), 3)
    assert together.candidates[0]["map"] != together.candidates[1]["map"]
    assert together.candidates[1] == alone.candidates[0]
    scores = []
    for learn, held in person_folds(persons, cameras, 3):
        normalizer = BlockNormalizer().fit(X[learn])
        learner = KXQDA(**cubic.params())
        learner.fit(normalizer.transform(X[learn]), persons[learn], cameras[learn])
        Z = normalizer.transform(X[held])
        scores.append(held_out_map(learner.distances(Z, Z), persons[held], cameras[held]))
    expected = {"map": np.mean(scores), "sd": np.std(scores, ddof=1)}
    assert alone.candidates == [pytest.approx({**cubic.params(), **expected})]


def test_the_better_setting_is_chosen(data):
    X, persons, cameras = data
    hopeless = Candidate("rbf", 1.0, "identity", 1e3)  # no direction separates: chance
    sensible = Candidate("linear", 1.0, "kernel", 1e-2)
    space = GramSpace([X])
    rows = np.arange(len(X))
    decision = choose(space, rows, persons, cameras, (hopeless, sensible), 3)
    assert decision.chosen == sensible.params()
    assert [row["kernel"] for row in decision.candidates] == ["rbf", "linear"]


def test_held_out_score_is_the_mean_reciprocal_rank_of_both_directions():
    persons, cameras = np.array(["1", "2", "1", "2"]), np.array(["A", "A", "B", "B"])
    D = np.zeros((4, 4))
    D[:2, 2:] = [[1, 2], [1, 2]]  # query 1 right at once, query 2 at the second place
    D[2:, :2] = [[1, 2], [2, 1]]
    assert held_out_map(D, persons, cameras) == pytest.approx((0.75 + 1.0) / 2)
