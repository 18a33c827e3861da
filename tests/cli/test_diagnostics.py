"""``resight evaluate --calibrate --curve``: further questions to an evaluation."""

from __future__ import annotations

import json

import pytest

from resight.cli import main
from resight.datasets.synthetic import draw_cameras


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diagnostics")
    draw_cameras(folder / "own", 44, seed=2)
    words = ["evaluate", str(folder / "own"), "--descriptor", "whos-star", "--jobs", "1"]
    return folder, [*words, "--learner", "kxqda", "--store", str(folder / "store")]


def test_curve_and_confidence_are_printed_kept_and_drawn(own, capsys):
    folder, words = own
    out = folder / "result"
    words = [*words, "--learner", "kxqda", "--rerank", "cross-view", "--calibrate", "--curve"]
    assert main([*words, "--people", "10,22", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "From 10 to 22 labelled people rank 1 went from" in printed
    assert "how sure (best constant)" in printed
    plain, reranked = json.loads((out / "result.json").read_text())["runs"]
    assert [point["people"] for point in plain["learning_curve"]["points"]] == [10, 22]
    assert set(plain["confidence"]) == {
        "first_match",
        "all_there",
        "half_missing",
        "not_in_gallery",
    }
    assert not {"confidence", "learning_curve"} & set(reranked)
    report = (out / "report.html").read_text()
    assert "how many people to label" in report
    assert "Reliability diagram" in report
    assert plain["learning_curve"]["sentence"] in report
    assert main(["report", str(out), "--out", str(folder / "again.html")]) == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--curve", "--people", "10,400"], "only 22 training people"),
        (["--people", "1"], "at least 3 people"),
        (["--curve", "--learner", "kxqda:cv"], "no fixed setting"),
    ],
)
def test_impossible_questions_are_refused(own, capsys, more, says):
    assert main([*own[1], *more]) == 1
    assert says in capsys.readouterr().err


def test_what_was_measured_is_kept_when_a_question_is_refused(own, capsys):
    folder, words = own
    out = folder / "refused"
    assert main([*words, "--people", "10,400", "--out", str(out)]) == 1
    captured = capsys.readouterr()
    assert "only 22 training people" in captured.err
    assert "k-XQDA" in captured.out
    assert json.loads((out / "result.json").read_text())["runs"]


def test_more_inner_products_than_memory_allows_are_refused(own, capsys, monkeypatch):
    monkeypatch.setattr("resight.experiments.evaluate.GRAM_LIMIT", 1000)
    assert main([*own[1], "--curve"]) == 1
    assert "too many; evaluate a part of the people" in capsys.readouterr().err


def test_sizes_that_are_no_numbers(own, capsys):
    assert main([*own[1], "--people", "many"]) == 2
    assert "give numbers" in capsys.readouterr().err


def test_too_few_people_for_a_calibration(tmp_path, capsys):
    draw_cameras(tmp_path / "own", 20, seed=1)
    words = ["evaluate", str(tmp_path / "own"), "--descriptor", "whos-star", "--jobs", "1"]
    words += ["--learner", "kxqda"]
    assert main([*words, "--store", str(tmp_path / "store"), "--calibrate"]) == 1
    assert "there are 10; label 10 more" in capsys.readouterr().err
