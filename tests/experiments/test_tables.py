from __future__ import annotations

import pytest

from resight.experiments.tables import notes


def measured(**rank1):
    runs = [
        {"learner": name, "rerank": None, "summary": {"rank1": {"mean": mean, "sd": None}}}
        for name, mean in rank1.items()
    ]
    return {"protocol": {"train_people": 12}, "runs": runs}


def test_it_is_said_where_learning_does_not_pay():
    (said,) = notes(measured(kxqda=66.7, euclidean=86.2, xqda=75.4))
    assert "12 people to learn from" in said
    assert "--curve" in said


@pytest.mark.parametrize(
    "rank1", [{"kxqda": 70.0, "euclidean": 30.0}, {"kxqda": 70.0}, {"euclidean": 30.0}]
)
def test_nothing_is_said_otherwise(rank1):
    assert notes(measured(**rank1)) == []


def test_re_ranked_rows_are_marked_as_using_the_gallery():
    result = measured(kxqda=70.0)
    result["runs"].append({**result["runs"][0], "rerank": "cross-view"})
    assert "whole gallery" in notes(result)[0]
