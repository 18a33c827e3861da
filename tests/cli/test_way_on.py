"""What is measured is what is fitted: from `evaluate` by its printed command, or by `--from`."""

from __future__ import annotations

import json
import shlex
import tarfile
from pathlib import Path

import numpy as np
import pytest

import resight
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.plans import DESCRIPTOR, budget_for, learner_for


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    draw_cameras(folder / "own", 12, seed=2, size=(64, 32))
    rng = np.random.default_rng(0)
    codes = np.tile(np.arange(12), 2)
    vectors = rng.normal(size=(12, 12))[codes] + 0.5 * rng.normal(size=(24, 12))
    cameras = np.repeat(["A", "B"], 12)
    np.savez(folder / "own.npz", features=vectors, persons=codes, cameras=cameras)
    return folder


@pytest.fixture(scope="module")
def measured(place):
    """Three learners, one of them chooses."""
    words = ["evaluate", str(place / "own"), "--descriptor", "whos-star", "--jobs", "1"]
    words += ["--learner", "kxqda:cv,xqda,euclidean", "--store", str(place / "store")]
    assert main([*words, "--out", str(place / "result")]) == 0
    return json.loads((place / "result" / "result.json").read_text())


def printed_command(capsys) -> list[str]:
    (line,) = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("  resight")
    ]
    return shlex.split(line)[1:]


def fitted(words: list[str], out: Path, capsys) -> tuple[resight.Model, dict]:
    capsys.readouterr()
    assert main([*words[: words.index("--out")], "--out", str(out), "--json"]) == 0
    return resight.load(out), json.loads(capsys.readouterr().out)


def test_the_printed_command_fits_a_folder_as_it_was_measured(place, tmp_path, capsys):
    words = ["evaluate", str(place / "own"), "--descriptor", "whos-star", "--mirror"]
    words += ["--learner", "kxqda,kissme", "--param", "kxqda.reg=1e-3", "--param", "kissme.pca=2"]
    words += ["--param", "kxqda.kernel=linear", "--store", str(place / "store"), "--jobs", "1"]
    assert main(words) == 0
    command = printed_command(capsys)
    model, facts = fitted([*command, "--jobs", "1"], tmp_path / "model", capsys)
    assert facts["learner"] == "kxqda"
    assert (model.descriptors, model.mirror) == (("whos-star",), True)
    assert (model.learner.reg, model.learner.kernel) == (1e-3, "linear")


def test_the_printed_command_fits_own_vectors_with_the_same_candidates(place, tmp_path, capsys):
    words = ["evaluate", "--features", str(place / "own.npz"), "--learner", "auto", "--jobs", "1"]
    out = ["--out", str(tmp_path / "result"), "--store", str(tmp_path / "store")]
    assert main([*words, "--param", "n_repeats=1", *out]) == 0
    command = printed_command(capsys)
    (run,) = json.loads((tmp_path / "result" / "result.json").read_text())["runs"]
    model, facts = fitted(command, tmp_path / "model", capsys)
    assert (facts["learner"], model.descriptors) == ("auto", ())
    assert model.learner.n_repeats == 1

    def learners(candidates):
        return {(row["stage"], row["learner"]) for row in candidates}

    assert learners(facts["candidates"]) == learners(run["trials"][0]["candidates"])
    assert facts["chosen"] == model.learner.setting_
    again, _ = fitted(
        ["fit", "--from", str(tmp_path / "result"), "--out"], tmp_path / "again", capsys
    )
    assert again.fingerprint == model.fingerprint


def test_a_result_names_its_winner_and_whether_it_is_chance(measured):
    winner = measured["winner"]
    means = [run["summary"]["rank1"]["mean"] for run in measured["runs"]]
    assert winner["run"] == int(np.argmax(means))
    assert winner["margin"] == pytest.approx(sorted(means)[-1] - sorted(means)[-2])
    low, high = winner["ci95"]
    assert low <= winner["margin"] <= high
    assert winner["more_than_chance"] == (winner["p_value"] < 0.05)
    assert ("may be chance" in winner["sentence"]) != winner["more_than_chance"]


def test_from_a_result_the_best_row_is_fitted_or_a_named_one(measured, place, tmp_path, capsys):
    words = ["fit", str(place / "own"), "--from", str(place / "result"), "--jobs", "1"]
    words += ["--store", str(place / "store"), "--no-calibrate"]
    best = measured["runs"][measured["winner"]["run"]]["fit"]
    model, facts = fitted([*words, "--out"], tmp_path / "best", capsys)
    assert (facts["learner"], "+".join(model.descriptors)) == (best["learner"], best["descriptor"])
    named = [*words, "--learner", "kxqda:cv", "--descriptor", "whos-star", "--out"]
    model, facts = fitted(named, tmp_path / "named", capsys)
    assert (facts["learner"], model.descriptors) == ("kxqda:cv", ("whos-star",))
    assert facts["chosen"].items() <= model.learner.get_params().items()
    assert main([*words, "--descriptor", "gog", "--out", str(tmp_path / "never")]) == 1
    assert "it has --descriptor whos-star --learner kxqda:cv;" in capsys.readouterr().err
    assert main([*words, "--param", "reg=1", "--out", str(tmp_path / "never")]) == 2
    assert "--param is fixed by the result" in capsys.readouterr().err


def test_changed_vectors_are_said_and_results_of_then_say_what_to_do(place, tmp_path, capsys):
    file = tmp_path / "own.npz"
    file.write_bytes((place / "own.npz").read_bytes())
    result = resight.evaluate(features=file, learner="xqda", jobs=1, store=tmp_path / "store")
    result.save(tmp_path / "result")
    content = dict(np.load(file))
    np.savez(file, **{**content, "features": content["features"] + 1.0})
    words = ["fit", "--from", str(tmp_path / "result"), "--out", str(tmp_path / "model")]
    assert main(words) == 0
    assert "has changed since it was evaluated" in capsys.readouterr().err
    archive = Path(__file__).parents[1] / "data" / "v0.1" / "flow.tar.xz"
    with tarfile.open(archive) as flow:
        flow.extractall(tmp_path, filter="data")
    (old,) = tmp_path.glob("flow/**/result.json")
    assert main(["fit", str(place / "own"), "--from", str(old.parent), *words[-2:]]) == 1
    assert "evaluate again, or name --descriptor and --learner" in capsys.readouterr().err


def test_one_recipe_is_the_default_everywhere():
    from inspect import signature

    for function in (resight.evaluate, resight.fit):
        defaults = signature(function).parameters
        assert (defaults["descriptor"].default, defaults["learner"].default) == (DESCRIPTOR, None)
    assert (learner_for(300), learner_for(20_000)) == ("auto", "kxqda:cv")
    assert budget_for(50) < budget_for(300) <= budget_for(10**6) == 600


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--learner", "auto", "--param", "budget=-1"], "'budget' parameter"),
        (["--learner", "kxqda,xqda"], "fit trains one"),
        (["--learner", "xqda:cv"], "':cv' is for kxqda"),
        (["--learner", "kxqda", "--param", "xqda.reg=1"], "not among the learners"),
        (["--from", "nowhere"], "no result.json in nowhere"),
    ],
)
def test_wrong_calls_say_what_to_do(place, words, says, capsys, tmp_path):
    given = ["fit", str(place / "own"), "--out", str(tmp_path / "never"), *words]
    assert main(given) in (1, 2)
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err
