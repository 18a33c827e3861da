from __future__ import annotations

import numpy as np
import pytest
from resight.tuning.race import Search, Tried

from resight.errors import InputError
from resight.tuning.candidates import (
    AUTO_CANDIDATES,
    AUTO_FUSIONS,
    AUTO_MIRROR,
    AUTO_POOL,
    CV,
    Candidate,
)
from resight.tuning.gram import GramSpace
from resight.tuning.settings import Setting

SOME = (
    Candidate("linear", 1.0, "kernel", 1e-2),
    Candidate("rbf", 1.0, "kernel", 1e-2),
    Candidate("rbf", 1.0, "identity", 1e-7),
)


@pytest.fixture(scope="module")
def data():
    """Two descriptors: one tells people apart, the other is noise."""
    rng = np.random.default_rng(2)
    persons = np.tile(np.arange(36), 2)
    cameras = np.repeat(["A", "B"], 36)
    useful = rng.normal(size=(36, 20))[persons] + 0.7 * rng.normal(size=(72, 20))
    noise = rng.normal(size=(72, 30))
    return useful, noise, persons, cameras


def search(data, features=None, **options):
    useful, noise, persons, cameras = data
    space = GramSpace(features or [useful, noise], precision="float64")
    rows = np.flatnonzero(persons < 24)
    return Search(space, rows, persons[rows], cameras[rows], **options)


def test_what_may_be_chosen_is_what_was_announced():
    assert AUTO_POOL == ("gog", "lomo", "lomo-dagger", "whos-dagger")
    assert AUTO_MIRROR == (False, True)
    assert AUTO_FUSIONS == ("concatenate", "kernel-mean", "distance-sum")
    assert set(CV) < set(AUTO_CANDIDATES)
    assert len(set(AUTO_CANDIDATES)) == len(AUTO_CANDIDATES) == 29


def test_a_descriptor_of_noise_loses_its_weight(data):
    found = search(data).run(SOME)
    assert found.weights[1] < found.weights[0]


def test_better_mirrored_descriptors_are_taken(data):
    useful = data[0]
    worse = useful + 1.5 * np.random.default_rng(0).normal(size=useful.shape)
    assert search(data, [worse, useful], mirrored=True).run(SOME).variant == "mirror"
    assert search(data, [useful, worse], mirrored=True).run(SOME).variant == "plain"
    assert search(data, [useful, useful], mirrored=True).run(SOME).variant == "plain"


def test_the_choice_is_reproducible_and_complete(data):
    first, second = search(data, seed=3), search(data, seed=3)
    assert first.run(SOME) == second.run(SOME)
    stages = [one.stage for one in first.tried]
    assert list(dict.fromkeys(stages)) == ["kernel", "fusion", "weights", "kernel again", "members"]
    assert stages.count("members") == 8
    settings = [one.setting for one in first.tried]
    assert len(set(settings)) == len(settings)
    for one in first.tried:
        assert 1 <= len(one.scores) <= 6
        assert all(np.isfinite(scores).all() for scores in one.scores)


def test_only_training_rows_are_looked_at(data):
    useful, noise, persons, cameras = data
    rows, outside = np.flatnonzero(persons < 24), np.flatnonzero(persons >= 24)
    space = GramSpace([useful, noise], precision="float64")
    for gram, squares in zip(space.grams, space.squares, strict=True):
        gram[outside], gram[:, outside], squares[outside] = np.nan, np.nan, np.nan
    blind = Search(space, rows, persons[rows], cameras[rows])
    assert blind.run(SOME) == search(data).run(SOME)


def test_hopeless_settings_leave_the_race_early(data):
    hopeless = Candidate("rbf", 1.0, "identity", 1e3)
    tried = search(data, [data[0]])
    chosen = tried.run((hopeless, *SOME))
    assert chosen.candidate != hopeless
    assert len(tried.tried[0].scores) < 6
    assert max(len(one.scores) for one in tried.tried) == 6


def test_a_setting_that_cannot_be_solved_loses(data):
    impossible = Candidate("linear", 1.0, "relative", 1e-300)
    tried = search(data, [data[0]])
    assert tried.run((impossible, *SOME)).candidate != impossible
    assert tried.tried[0].mean == 0.0


def test_standard_errors_count_each_person_once():
    setting = Setting(SOME[0], (1.0,))
    people = [np.array([0, 1]), np.array([2, 3]), np.array([0, 2]), np.array([1, 3])]
    a = Tried(setting, "", people, [np.array(s) for s in ([0.4, 0.2], [0.6, 1], [0.8, 1], [0, 1])])
    b = Tried(setting, "", people, [np.zeros(2)] * 4)
    means = np.array([0.6, 0.1, 0.8, 1.0])
    expected = pytest.approx((means.mean(), means.std(ddof=1) / 2))
    assert a.ahead_of(b) == expected
    assert (a.mean, a.standard_error) == expected
    shorter = Tried(setting, "", people, [np.zeros(2)] * 2)
    assert a.ahead_of(shorter)[0] == pytest.approx(0.55)


def test_a_budget_stops_the_search_but_not_before_one_setting(data):
    with pytest.raises(InputError, match="give more seconds"):
        search(data, budget=1e-9).run(SOME)


def test_when_the_budget_ends_whole_folds_count(data, monkeypatch):
    from resight.tuning import race as module

    clock = iter(range(10_000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    limited = search(data, budget=3.5)  # over in the second of two settings' second fold
    assert limited.stopped is None
    assert limited.run(SOME[:2]).fusion == "concatenate"
    assert [len(one.scores) for one in limited.tried] == [1, 1]
    assert "over in stage 'kernel' after 1 of" in (limited.stopped or "")


def test_too_few_people_name_the_minimum(data):
    useful, _, persons, cameras = data
    rows = np.flatnonzero(persons < 4)
    with pytest.raises(InputError, match="at least 6 people"):
        Search(GramSpace([useful]), rows, persons[rows], cameras[rows])


def test_a_camera_whose_people_nobody_else_sees_is_refused(data):
    useful, _, persons, cameras = data
    alone = np.where(persons == 30, "C", cameras)
    persons = np.where(persons == 30, 99, persons)
    with pytest.raises(InputError, match="camera C has no labelled person"):
        Search(GramSpace([useful]), np.arange(72), persons, alone)


def three_cameras(blind):
    """Three cameras; `blind` is the noise with which each sees one third of the features."""
    rng = np.random.default_rng(1)
    n, d = 90, 6
    persons, cameras = np.tile(np.arange(n), 3), np.repeat(["A", "B", "C"], n)
    X = rng.normal(size=(n, 3 * d))[persons] + 0.3 * rng.normal(size=(3 * n, 3 * d))
    for i in range(3):
        X[i * n : (i + 1) * n, i * d : (i + 1) * d] += blind * rng.normal(size=(n, d))
    return GramSpace([X]), persons, cameras


def test_a_metric_for_each_pair_is_tried_with_three_cameras_and_people_enough():
    space, persons, cameras = three_cameras(blind=0.0)
    tried = Search(space, np.arange(len(space)), persons, cameras)
    assert not tried.run(SOME[:1]).per_pair  # one metric is as good, and simpler
    assert tried.tried[-1].stage == "camera pairs"
    few = np.flatnonzero(persons < 21)  # 14 to learn from in a fold
    tried = Search(space, few, persons[few], cameras[few])
    tried.run(SOME[:1])
    assert tried.tried[-1].stage == "members"


def test_a_metric_for_each_pair_is_chosen_where_one_cannot_do():
    space, persons, cameras = three_cameras(blind=2.0)
    assert Search(space, np.arange(len(space)), persons, cameras).run(SOME[:1]).per_pair
