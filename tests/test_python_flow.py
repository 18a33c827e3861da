"""The README's flow from Python, run as it is written and seen by a type checker."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import resight

README = Path(__file__).parents[1] / "README.md"
PROGRAM = """
import numpy as np

import resight
from resight import AutoKXQDA, BlockNormalizer, KXQDA, XQDA

people: resight.Sightings = resight.sightings("cameras")
store = resight.FeatureStore("features")
result: resight.Result = resight.evaluate(
    people, descriptor="whos-star", learner="kxqda,euclidean", store=store, out="result", jobs=1
)
html: str = result._repr_html_()
display: resight.CMCDisplay = resight.CMCDisplay.from_result("result")
same: dict[str, object] = dict(resight.Result.load("result").document)
model: resight.Model = resight.fit(people, descriptor="whos-star", store=store, jobs=1)
model.save("model")
loaded = resight.Model.load("model")
gallery: resight.Gallery = resight.Gallery.create("gallery", loaded)
added = gallery.add(people, store=store)
query = str(people.files()[0])
for hit in gallery.search(query, k=3):
    row: tuple[int, str, float, float | None] = hit.rank, hit.id, hit.distance, hit.probability
    print(row[0], row[1])
print(len(gallery), len(added.added), gallery.model.fingerprint == model.fingerprint)

X = np.random.default_rng(0).normal(size=(40, 8))
persons = [person for _ in "ab" for person in range(20)]
cameras = ["a"] * 20 + ["b"] * 20
rows = BlockNormalizer().fit(X).transform(X)
for learner in (KXQDA(), XQDA(), AutoKXQDA(n_repeats=1)):
    distances = learner.fit(rows, persons, cameras).distances(rows[:2], rows)
    score: float = learner.score(rows, persons, cameras)
workers = resight.cluster
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flow")
    (folder / "program.py").write_text(PROGRAM)
    return folder / "program.py"


def test_the_flow_runs_as_written(program: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from resight.datasets.synthetic import draw_cameras

    draw_cameras(program.parent / "cameras", 22, size=(64, 32))
    monkeypatch.chdir(program.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # noise in random vectors
        exec(compile(PROGRAM, "program.py", "exec"), {})
    *hits, last = capsys.readouterr().out.splitlines()
    assert [hit.split()[0] for hit in hits] == ["1", "2", "3"]
    assert last == "44 44 True"


def test_the_flow_in_the_readme_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    from resight.datasets.synthetic import draw_cameras

    drawn = draw_cameras(tmp_path / "my" / "cameras", 6, size=(64, 32))
    draw_cameras(tmp_path / "new", 6, size=(64, 32), seed=5)
    (tmp_path / "someone.jpg").write_bytes(drawn.files()[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (flow,) = re.findall(r"```py\n(.*?)```", README.read_text("utf-8"), re.S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six people are too few to calibrate
        exec(compile(flow, "README.md", "exec"), {})
    card, hits = capsys.readouterr().out.split("\n1 ")
    assert card.startswith("# ")
    assert [line.split()[0] for line in f"1 {hits}".splitlines()] == list("12345")


def test_a_type_checker_sees_no_any_in_it(program: Path) -> None:
    """mypy reports every expression whose type is Any; nothing of ours may be one."""
    source = Path(resight.__file__).parents[1]
    settings = "[mypy]\nstrict = True\n[mypy-program]\ndisallow_any_expr = True\n"
    (program.parent / "mypy.ini").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "program.py"],
        env={"MYPYPATH": str(source), "PATH": ""},
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    own = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert own == [], done.stdout
    assert "Found" in done.stdout or "Success" in done.stdout, done.stderr


def test_what_is_exported_exists() -> None:
    for name in resight.__all__:
        assert getattr(resight, name) is not None


def test_what_is_left_out_is_warned_of(tmp_path: Path) -> None:
    from resight.datasets.synthetic import draw_cameras

    sightings = draw_cameras(tmp_path / "cameras", 4, size=(64, 32))
    (tmp_path / "cameras" / str(sightings.paths[0])).write_bytes(b"not an image")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        resight.fit(sightings, descriptor="whos-star", store=tmp_path / "features", jobs=1)
    texts = [str(warning.message) for warning in caught]
    assert any("left out 1 image" in text for text in texts)
    assert any("not calibrated" in text for text in texts)


def test_a_learner_is_not_taken_for_a_model(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(8, 3))
    resight.XQDA().fit(X, [0, 1, 2, 3] * 2).save(tmp_path / "learner")
    with pytest.raises(resight.errors.InputError, match="XQDA, not a model"):
        resight.Model.load(tmp_path / "learner")
