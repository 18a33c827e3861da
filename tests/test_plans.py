"""Plans: what is refused before any work, and what becomes a row."""

from __future__ import annotations

import pytest

from resight.errors import InputError
from resight.plans import plans_of


def test_learners_and_their_parameters_are_checked_before_any_work():
    with pytest.raises(InputError, match="did you mean 'kxqda'"):
        plans_of("kxqd", {})
    with pytest.raises(InputError, match="did you mean 'width'"):
        plans_of("kxqda", {"kxqda": {"widht": 2.0}})
    with pytest.raises(InputError, match="not among the learners"):
        plans_of("kxqda", {"xqda": {"reg": 1e-3}})


@pytest.mark.parametrize(
    ("learner", "name", "value"),
    [("kxqda", "reg", "abc"), ("kxqda", "landmarks", 0), ("auto", "n_folds", 1)],
)
def test_values_out_of_range_are_refused_before_any_work(learner, name, value):
    with pytest.raises(InputError, match=rf"learner '{learner}': The '{name}' parameter .* must"):
        plans_of(learner, {learner: {name: value}})


@pytest.mark.parametrize("params", [{"reg": 1e-3}, {"width": 2.0}, {"reg": 1e-3, "landmarks": 9}])
def test_what_is_chosen_by_cross_validation_cannot_be_given(params):
    with pytest.raises(InputError, match=r"'kxqda:cv' chooses (reg|width) itself"):
        plans_of("kxqda:cv", {"kxqda": params})


def test_versions_and_rerankings_become_plans():
    plans = plans_of("kxqda:cv,xqda", {}, "k-reciprocal")
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
        plans_of(word, {})
