from __future__ import annotations

import pytest

from resight.errors import InputError
from resight.experiments.config import checked_config


def test_unknown_keys_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'learners'"):
        checked_config({"dataset": "grid", "learner": ["kxqda"]})


def test_learners_and_their_parameters_are_checked_before_any_work():
    with pytest.raises(InputError, match="did you mean 'kxqda'"):
        checked_config({"dataset": "x", "learners": ["kxqd"]}).plans()
    with pytest.raises(InputError, match="did you mean 'width'"):
        checked_config({"dataset": "x", "params": {"kxqda": {"widht": 2.0}}}).plans()
    with pytest.raises(InputError, match="not among the learners"):
        checked_config({"dataset": "x", "params": {"xqda": {"reg": 1e-3}}}).plans()


@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [("kxqda", "reg", "abc"), ("kxqda", "landmarks", 0), ("auto", "n_folds", 1)],
)
def test_values_out_of_range_are_refused_before_any_work(learner, name, value):
    given = {"dataset": "x", "learners": [learner], "params": {learner: {name: value}}}
    with pytest.raises(InputError, match=rf"learner '{learner}': The '{name}' parameter .* must"):
        checked_config(given).plans()


@pytest.mark.parametrize("params", [{"reg": 1e-3}, {"width": 2.0}, {"reg": 1e-3, "landmarks": 9}])
def test_what_is_chosen_by_cross_validation_cannot_be_given(params):
    given = {"dataset": "x", "learners": ["kxqda:cv"], "params": {"kxqda": params}}
    with pytest.raises(InputError, match=r"'kxqda:cv' chooses (reg|width) itself"):
        checked_config(given).plans()


def test_versions_and_rerankings_become_plans():
    plans = checked_config(
        {"dataset": "x", "learners": ["kxqda:cv", "xqda"], "rerank": ["k-reciprocal"]}
    ).plans()
    assert [(p.learner, p.version, p.rerank) for p in plans] == [
        ("kxqda", "cv", None),
        ("kxqda", "cv", "k-reciprocal"),
        ("xqda", "default", None),
        ("xqda", "default", "k-reciprocal"),
    ]
    assert plans[0].candidates
    assert not plans[2].candidates


@pytest.mark.parametrize("word", ["xqda:cv", "kxqda:best"])
def test_unknown_versions_are_refused(word):
    with pytest.raises(InputError, match="':cv' is for kxqda"):
        checked_config({"dataset": "x", "learners": [word]}).plans()
