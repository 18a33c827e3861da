"""Matches of an evaluation, explained: which are chosen, and that they are those of the ranking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.synthetic import draw_cameras
from resight.errors import InputError
from resight.experiments.evaluate import Evaluation, FeatureSet
from resight.experiments.explaining import FILE, _chosen, explain_matches, save_explanations
from resight.experiments.results import Result, Run, document, ranking_rows
from resight.experiments.runner import FinishedSplits
from resight.features.store import FeatureStore
from resight.plans import Plan
from resight.protocols import half_half
from resight.report import write
from resight.report.pictures import read_matches

PLANS = [Plan("kxqda", rerank="cross-view"), Plan("kxqda", params={"reg": 1e-3}), Plan("xqda")]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, list[Run]]:
    folder = tmp_path_factory.mktemp("explaining")
    drawn = draw_cameras(folder / "images", 24, n_cameras=2, seed=5)
    store = FeatureStore(folder / "features")
    features = store.ensure(drawn, "whos-star")
    given = FeatureSet(features, None, features.usable)
    finished = FinishedSplits(store.folder)
    evaluation = Evaluation(drawn, half_half(drawn), PLANS, [given], finished)
    return evaluation, evaluation.runs()


@pytest.fixture(scope="module")
def saved(evaluated: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    evaluation, runs = evaluated
    told = document(evaluation.sightings, evaluation.protocol, runs, {})
    result = Result(told, ranking_rows(evaluation.sightings, runs))
    folder = tmp_path_factory.mktemp("saved")
    result.save(folder)
    return folder, result


@pytest.fixture(scope="module")
def told(evaluated: Any) -> dict[str, Any]:
    found = explain_matches(*evaluated)
    assert found is not None
    return found


def test_the_first_run_without_re_ranking_is_explained(evaluated: Any, told: Any) -> None:
    found, runs = evaluated
    assert told["run"] == runs[1].title
    result, query, gallery, _ = runs[1].trials[0].rankings[0]
    paths = found.sightings.paths
    firsts = {
        paths[q]: (paths[gallery[top[0]]], distance[0])
        for q, top, distance in zip(query, result.top, result.top_distances, strict=True)
    }
    for match in told["matches"]:
        path, distance = firsts[match["query"]["path"]]
        assert match["match"]["path"] == path
        assert match["explanation"]["distance"] == pytest.approx(distance, rel=1e-4)
        assert match["right"] == (match["first_rank"] == 1)
        assert match["explanation"]["compared"] == "different people"


def test_right_and_wrong_matches_are_spread_over_distances() -> None:
    right = np.arange(40) % 4 != 0
    distances = np.arange(40.0)
    chosen = _chosen(right, distances, 4)
    assert [bool(right[i]) for i in chosen] == [True, True, False, False]
    assert chosen[0] < chosen[1]
    assert chosen[2] < chosen[3]
    assert len(_chosen(np.ones(40, bool), distances, 4)) == 4
    assert len(_chosen(np.zeros(40, bool), distances, 4)) == 4
    assert len(_chosen(right[:2], distances[:2], 4)) == 2


def test_what_would_take_long_is_not_explained(evaluated: Any) -> None:
    found, runs = evaluated
    assert explain_matches(found, runs[:1]) is None
    assert explain_matches(found, runs, 0) is None


def test_the_report_draws_them(evaluated: Any, saved: Any, told: Any) -> None:
    found, _ = evaluated
    tmp_path, result = saved
    save_explanations(tmp_path, told)
    page = tmp_path / "report.html"
    write(page, result.document, found.sightings, tmp_path / "rankings.csv")
    text = page.read_text()
    assert text.count('<svg class="crops"') == 4
    assert "the first match is correct" in text
    assert "https://" not in text
    save_explanations(tmp_path, None)  # a result that has none must not keep the old ones
    assert not (tmp_path / FILE).exists()
    write(page, result.document, found.sightings, tmp_path / "rankings.csv")
    assert '<svg class="crops"' not in page.read_text()


def test_missing_images_and_boxes(evaluated: Any, told: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    found, _ = evaluated
    boxed = json.loads(json.dumps(told))
    for match in boxed["matches"]:
        match["query"]["box"] = [-3, 10, 30, 60]
    save_explanations(tmp_path, boxed)
    _, drawn = read_matches(tmp_path / FILE, found.sightings)
    assert len(drawn) == 4
    _, drawn = read_matches(tmp_path / FILE, replace(found.sightings, root=tmp_path))
    assert drawn == []
    (tmp_path / FILE).write_text("{")
    with pytest.raises(InputError, match="damaged"):
        read_matches(tmp_path / FILE, found.sightings)
