"""Results as objects: tables, files, pages of notebooks; the same figures everywhere."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.experiments.evaluate import DiagnosticsError, evaluate
from resight.experiments.results import Result
from resight.report.displays import CMCDisplay


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(5)
    codes = np.tile(np.arange(20), 2)
    np.savez(
        folder / "own.npz",
        features=rng.normal(size=(20, 8))[codes] + 0.4 * rng.normal(size=(40, 8)),
        persons=codes.astype(str),
        cameras=np.repeat(["<A>", "B"], 20),
    )
    return folder / "own.npz"


@pytest.fixture(scope="module")
def result(vectors):
    store = vectors.parent / "store"
    params = {"kxqda": {"reg": 1e-3}}
    return evaluate(features=vectors, learner="kxqda,euclidean", params=params, store=store, jobs=1)


def test_a_saved_result_is_the_same_one(result, tmp_path):
    result.save(tmp_path)
    again = Result.load(tmp_path)
    assert again == result
    again.save(tmp_path / "again")
    for name in ("result.json", "rankings.csv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_frame_has_one_row_for_each_run_and_split(result):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    assert len(frame) == 20
    means = frame.groupby("learner")["rank1"].mean()
    for run in result.document["runs"]:
        assert means[run["learner"]] == pytest.approx(run["summary"]["rank1"]["mean"])
    assert set(frame["split"]) == set(range(10))


def test_a_frame_without_pandas_names_the_package(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        result.to_frame()


def test_notebooks_and_terminals_show_the_table(result):
    run = result.document["runs"][0]
    shown = f"{run['summary']['rank1']['mean']:.1f} ± {run['summary']['rank1']['sd']:.1f}"
    assert shown in str(result)
    page = result._repr_html_()
    assert f"<td>{shown}</td>" in page
    document = json.loads(json.dumps(result.document))
    document["runs"][0]["title"] = "<script>"
    assert "&lt;script&gt;" in Result(document, [])._repr_html_()


def test_a_display_draws_a_result_or_a_folder(result, tmp_path):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    display = CMCDisplay.from_result(result, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert len(ax.lines) == 2
    assert ax.lines[0].get_ydata()[0] == pytest.approx(
        result.document["runs"][0]["summary"]["rank1"]["mean"], abs=1e-4
    )
    result.save(tmp_path)
    other = CMCDisplay.from_result(tmp_path, ax=Figure().add_subplot())
    np.testing.assert_array_equal(other.curves[1].mean, display.curves[1].mean)


def test_a_refused_curve_hands_over_what_was_measured(vectors, tmp_path):
    with pytest.raises(DiagnosticsError, match="only 10 training people") as caught:
        evaluate(
            features=vectors,
            learner="kxqda",
            curve=[5, 400],
            store=tmp_path,
            out=tmp_path / "out",
            jobs=1,
        )
    assert Result.load(tmp_path / "out").document == caught.value.result.document


@pytest.mark.parametrize("n_sightings", [None, 3])
def test_vectors_need_a_sighting_each(vectors, tmp_path, n_sightings):
    from resight.features.vectors import load_vectors

    given = None
    if n_sightings:
        given = Sightings([f"{i}" for i in range(3)], ["a", "b", "a"], ["A", "A", "B"])
    features = load_vectors(vectors)[0]
    with pytest.raises(InputError, match=r"40 vectors, but (no|3) sightings"):
        evaluate(given, features=features, store=tmp_path)
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(store=tmp_path)
