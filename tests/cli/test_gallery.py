from __future__ import annotations

import getpass
import json
import shutil
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery.log import LogRow, verify
from resight.models.model import Model
from resight.workers import executors


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with drawn cameras and a model fitted on them."""
    folder = tmp_path_factory.mktemp("made")
    drawn = draw_cameras(folder / "cameras", n_people=8, n_cameras=2, seed=1)
    model = Model(("whos-star",), KXQDA())
    model.fit(model.describe(drawn.files()), drawn.persons, drawn.cameras).save(folder / "model")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run ``resight`` and return its exit code, output and messages."""

    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_the_life_of_a_gallery(made: Path, tmp_path: Path, run: Any) -> None:
    place = tmp_path / "g"
    assert run("gallery", "create", place, "--model", made / "model")[0] == 0
    code, out, _ = run("gallery", "add", place, made / "cameras", "--json")
    assert (code, json.loads(out)["added"]) == (0, 16)
    code, out, _ = run("gallery", "add", place, made / "cameras")
    assert "added 0 sightings, skipped 16 existing" in out

    info = json.loads(run("gallery", "info", place, "--json")[1])
    assert (info["sightings"], info["persons"], info["schema"]) == (16, 8, "resight.gallery-info/1")
    assert "camera-1 (8), camera-2 (8)" in run("gallery", "info", place)[1]
    assert "16 sightings: no damage found" in run("gallery", "check", place)[1]
    assert json.loads(run("gallery", "check", place, "--json")[1])["clean"]

    code, out, _ = run("gallery", "forget", place, "0003")
    assert "erased '0003': 2 sightings" in out
    assert "nothing is left" in out
    code, _, err = run("gallery", "forget", place, "0003")
    assert (code, "unknown person '0003'" in err) == (1, True)
    image = made / "cameras/camera-1/0001/0001.png"
    hits = json.loads(run("search", place, image, "--json")[1])["queries"][0]["hits"]
    assert "removed 1 sighting; 13 left" in run("gallery", "remove", place, hits[0]["id"])[1]
    assert run("gallery", "rebuild", place, "--model", made / "model")[0] == 0
    assert "kept for 30 days; removed 0" in run("gallery", "retain", place, "30")[1]
    assert "kept without limit" in run("gallery", "retain", place)[1]


def test_add_files_of_one_camera_and_bad_files(made: Path, tmp_path: Path, run: Any) -> None:
    place, images = tmp_path / "g", tmp_path / "images"
    run("gallery", "create", place, "--model", made / "model")
    images.mkdir()
    shutil.copy(made / "cameras/camera-1/0001/0001.png", images / "a.png")
    (images / "b.jpg").write_text("no image")
    code, out, err = run("gallery", "add", place, images, "--camera", "door", "--json")
    assert code == 1
    assert json.loads(out)["added"] == 1
    assert "skipped: b.jpg" in err
    one = made / "cameras/camera-1/0002/0001.png"
    assert run("gallery", "add", place, one, "--camera", "door")[0] == 0
    assert json.loads(run("gallery", "info", place, "--json")[1])["cameras"] == {"door": 2}
    assert run("gallery", "add", place, made / "cameras", "--unlabelled")[0] == 0
    assert json.loads(run("gallery", "info", place, "--json")[1])["persons"] == 0


def test_add_by_processes_and_by_nobody(made: Path, tmp_path: Path, run: Any) -> None:
    place = tmp_path / "g"
    run("gallery", "create", place, "--model", made / "model")
    words = ("gallery", "add", place, made / "cameras")
    assert run(*words, "--jobs", "2", "--cluster", "tcp://127.0.0.1:9")[0] == 2
    code, _, err = run(*words, "--cluster", "somewhere")
    assert (code, "expected tcp://HOST:PORT" in err) == (1, True)
    code, out, _ = run(*words, "--jobs", "1", "--json")
    assert (code, json.loads(out)["added"]) == (0, 16)


def test_add_takes_the_vectors_of_a_feature_store(
    made: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        run("gallery", "create", name, "--model", made / "model")
    words = (made / "cameras", "--jobs", "1", "--json")
    assert json.loads(run("gallery", "add", "a", *words)[1])["described"] == 16
    extract = ("extract", made / "cameras", "--descriptor", "whos-star", "--jobs", "1")
    assert run(*extract, "--store", "elsewhere")[0] == 0
    found = json.loads(run("gallery", "add", "b", *words, "--store", "elsewhere")[1])
    assert (found["added"], found["described"]) == (16, 0)
    assert run(*extract)[0] == 0  # into the folder `features`, which is then used unasked
    assert json.loads(run("gallery", "add", "c", *words)[1])["described"] == 0
    code, _, err = run("gallery", "add", "c", *words, "--store", "nowhere")
    assert (code, "nowhere" in err) == (2, True)


def test_add_without_a_scheduler(
    made: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "cluster", partial(executors.cluster, timeout=0.5))
    run("gallery", "create", tmp_path / "g", "--model", made / "model")
    words = ("gallery", "add", tmp_path / "g", made / "cameras")
    code, out, err = run(*words, "--cluster", "tcp://127.0.0.1:9")
    assert (code, out) == (1, "")
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in err


def test_check_fails_on_damage(made: Path, tmp_path: Path, run: Any) -> None:
    place = tmp_path / "g"
    run("gallery", "create", place, "--model", made / "model")
    run("gallery", "add", place, made / "cameras")
    data = place / "gallery.sqlite"
    content = data.read_bytes()
    data.write_bytes(content[: len(content) // 2])
    code, out, _ = run("gallery", "check", place)
    assert code == 1
    assert "damaged: " in out
    code, out, _ = run("gallery", "check", place, "--json")
    assert (code, json.loads(out)["clean"]) == (1, False)


def test_mistakes(made: Path, tmp_path: Path, run: Any) -> None:
    code, _, err = run("gallery", "info", tmp_path / "none")
    assert (code, "no gallery at" in err) == (1, True)
    code, _, err = run("gallery", "create", tmp_path / "g", "--model", tmp_path)
    assert (code, "is not a model folder" in err) == (1, True)
    assert not (tmp_path / "g").exists()
    assert run("gallery", "crate", "x")[0] == 2
    run("gallery", "create", tmp_path / "g", "--model", made / "model")
    code, _, err = run("gallery", "create", tmp_path / "g", "--model", made / "model")
    assert (code, "already" in err) == (1, True)
    code, _, err = run("gallery", "add", tmp_path / "g", tmp_path / "nothing")
    assert code == 1


def test_an_indefinite_metric_has_no_gallery(made: Path, tmp_path: Path, run: Any) -> None:
    from resight import KISSME

    rng = np.random.default_rng(0)
    model = Model(("whos-star",), KISSME(pca=5, psd=False))
    persons = np.tile(np.arange(20), 2)
    features = rng.normal(size=(40, 2960))
    model.fit(features, persons, np.repeat([0, 1], 20)).save(tmp_path / "model")
    code, _, err = run("gallery", "create", tmp_path / "g", "--model", tmp_path / "model")
    assert code == 1
    assert err.startswith("error: ")
    assert not (tmp_path / "g").exists()


def test_backup_restore_and_an_unfinished_erasing(
    made: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resight.errors import StoreError
    from resight.gallery.engines.sqlite import SqliteEngine

    place, file = tmp_path / "g", tmp_path / "g.backup"
    run("gallery", "create", place, "--model", made / "model", "--no-descriptors")
    run("gallery", "add", place, made / "cameras")
    code, out, _ = run("gallery", "backup", place, file)
    assert (code, "`forget` and `retain` do not reach backups" in out) == (0, True)
    assert run("gallery", "restore", file, tmp_path / "h")[0] == 0
    code, out, _ = run("gallery", "info", tmp_path / "h")
    assert "descriptor 0, embedding" in out
    assert run("gallery", "convert", place, tmp_path / "new")[0] == 1
    facts = json.loads(run("gallery", "info", place, "--json")[1])
    assert facts["bytes_per_sighting"]["descriptor"] == 0

    def full(*args: Any, **kwargs: Any) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteEngine, "purge", full)
        code, _, err = run("gallery", "forget", place, "0001")
        assert (code, "the disk is full" in err) == (1, True)
    code, out, _ = run("gallery", "check", place)
    assert (code, "--resume" in out) == (1, True)
    assert run("gallery", "forget", place)[0] == 2
    assert run("gallery", "forget", place, "0001", "--resume")[0] == 2
    code, out, _ = run("gallery", "forget", place, "--resume")
    assert (code, "erased '0001'" in out, "nothing is left" in out) == (0, True, True)
    assert "no interrupted erasure found" in run("gallery", "forget", place, "--resume")[1]
    assert run("gallery", "check", place)[0] == 0


def test_users_come_and_go(
    made: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "g"
    run("gallery", "create", place, "--model", made / "model")
    assert "no users yet" in run("gallery", "users", place)[1]
    (tmp_path / "password").write_text("correct horse battery\n")
    given = ("--password-file", tmp_path / "password")
    assert run("gallery", "users", place, "--add", "ann", "--role", "teacher", *given)[0] == 0
    monkeypatch.setenv("RESIGHT_PASSWORD", "short")
    code, _, err = run("gallery", "users", place, "--add", "bob")
    assert (code, "at least 12 characters" in err, "short" in err) == (1, True, False)
    monkeypatch.setenv("RESIGHT_PASSWORD", "another long one")
    assert run("gallery", "users", place, "--add", "bob")[0] == 0
    code, _, err = run("gallery", "users", place, "--add", "eve", "--role", "king")
    assert (code, "viewer" in err) == (1, True)
    assert len(run("gallery", "users", place, "--token", "ann")[1].strip()) == 43
    code, _, err = run("gallery", "users", place, "--token", "an")
    assert (code, "ann" in err) == (1, True)
    assert run("gallery", "users", place, "--remove", "bob")[0] == 0
    listed = json.loads(run("gallery", "users", place, "--json")[1])["users"]
    assert listed == [{"name": "ann", "role": "teacher"}]


def test_the_log_of_the_command_line(made: Path, tmp_path: Path, run: Any) -> None:
    place, image = tmp_path / "g", made / "cameras/camera-1/0001/0001.png"
    run("gallery", "create", place, "--model", made / "model")
    run("gallery", "add", place, made / "cameras")
    run("gallery", "require", place, "--purpose")
    code, out, err = run("search", place, image, "-k", "3")
    assert (code, out, "asks for a purpose" in err) == (1, "", True)
    assert run("search", place, image, "-k", "3", "--purpose", "case 7")[0] == 0
    head = json.loads(run("gallery", "log", place, "--json")[1])["head"]
    run("gallery", "forget", place, "0003")
    run("gallery", "retain", place, "30000")
    document = json.loads(run("gallery", "log", place, "--json")[1])
    whats = [entry["what"] for entry in document["entries"]]
    assert whats == ["add", "require", "search", "read log", "forget", "retain", "read log"]
    search = document["entries"][2]
    assert (search["who"], search["via"]) == (getpass.getuser(), "command line")
    assert (search["purpose"], len(search["shown"])) == ("case 7", 3)
    assert search["query"] == [f"sha256:{sha256(image.read_bytes()).hexdigest()}"]
    code, out, _ = run("gallery", "log", place, "--verify", head)
    assert (code, "the chain is whole and leads through this head" in out) == (0, True)
    code, _, err = run("gallery", "log", place, "--verify", head[:-1] + "x")
    assert (code, "no head of a log" in err) == (1, True)
    code, _, err = run("gallery", "log", place, "--verify", "3:" + "0" * 64)
    assert (code, "entry 3 is not the one of the exported head" in err) == (1, True)
    assert run("gallery", "log", place, "--export", tmp_path / "log.jsonl")[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert verify([LogRow(**line) for line in lines], head).problems == []
    code, out, _ = run("gallery", "log", place, "--retain", "30")
    assert (code, "kept for 30 days; emptied 0" in out) == (0, True)
    assert "case 7" in run("gallery", "log", place)[1]
    assert "second person" in run("gallery", "require", place, "--second-person")[1]
