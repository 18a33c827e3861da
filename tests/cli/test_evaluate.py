from __future__ import annotations

import json

import numpy as np
import pytest

from resight.cli import main
from resight.datasets.synthetic import draw_cameras


@pytest.fixture(scope="module")
def cameras(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cameras")
    draw_cameras(folder / "own", 24, seed=2)
    return folder


def test_own_folders_give_a_table_a_document_and_a_report(cameras, capsys):
    out = cameras / "result"
    words = ["evaluate", str(cameras / "own"), "--descriptor", "whos-star", "--jobs", "1"]
    words += ["--learner", "kxqda,euclidean", "--store", str(cameras / "store")]
    assert main([*words, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "k-XQDA, whos-star" in printed
    assert (out / "report.html").stat().st_size > 1000
    assert json.loads((out / "result.json").read_text())["schema"] == "resight.result/1"
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["learner"] for run in document["runs"]] == ["kxqda", "euclidean"]


def test_an_unreadable_image_is_left_out_and_the_exit_code_says_so(cameras, tmp_path, capsys):
    folder = tmp_path / "own"
    draw_cameras(folder, 12, seed=4)
    victim = sorted(folder.rglob("*.png"))[0]
    victim.write_bytes(victim.read_bytes()[:100])
    (folder / victim.parts[-3] / "extra").mkdir()
    words = ["evaluate", str(folder), "--descriptor", "whos-star", "--learner", "euclidean"]
    assert main([*words, "--store", str(tmp_path / "store"), "--jobs", "1"]) == 1
    captured = capsys.readouterr()
    assert "1 image could not be used" in captured.err
    assert "Euclidean" in captured.out


def test_own_vectors_and_a_configuration_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    codes = np.tile(np.arange(20), 2)
    X = rng.normal(size=(20, 8))[codes] + 0.3 * rng.normal(size=(40, 8))
    names = [f"f{i}" for i in range(8)]
    lines = [",".join(["person", "camera", *names])]
    for i, code in enumerate(codes):
        lines.append(",".join([f"p{code}", "AB"[i // 20], *map(str, X[i])]))
    (tmp_path / "vectors.csv").write_text("\n".join(lines))
    (tmp_path / "run.toml").write_text(
        f'features = "{tmp_path / "vectors.csv"}"\nlearner = ["kxqda", "kissme"]\n'
        "[param.kxqda]\nreg = 1e-3\n"
    )
    assert main(["evaluate", "--config", str(tmp_path / "run.toml"), "--jobs", "1"]) == 0
    assert "KISSME" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evaluate"], "give a dataset name"),
        (["evaluate", "grid", "--learner", "kxqdaa"], "did you mean 'kxqda'"),
        (["evaluate", "nowhere"], "nowhere"),
        (["evaluate", "grid", "--param", "kxqda.reg"], "name=value"),
        (["evaluate", "grid", "--learner", "kxqda", "--param", "reg=abc"], "must be a float"),
        (["evaluate", "--features", "x.csv", "--mirror"], "apply to computing descriptors"),
        (["fit", "--out", "m"], "give a dataset name"),
        (["fit", "--features", "x.csv", "--descriptor", "gog", "--out", "m"], "leave them out"),
        (
            ["evaluate", "--features", "x.csv", "--cluster", "tcp://h:1"],
            "apply to computing descriptors",
        ),
    ],
)
def test_wrong_calls_say_what_to_do(words, says, capsys):
    assert main(words) in (1, 2)
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err


def test_fit_saves_a_model_that_embeds_images(cameras, capsys):
    import resight

    model = cameras / "model"
    words = ["fit", str(cameras / "own"), "--descriptor", "whos-star", "--out", str(model)]
    words += ["--learner", "xqda"]
    assert main([*words, "--store", str(cameras / "store"), "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["people"] == 24
    loaded = resight.load(model)
    files = sorted((cameras / "own").rglob("*.png"))[:2]
    features = loaded.describe(files)
    assert features.shape == (2, 2960)
    assert np.isfinite(loaded.embed(features)).all()
