"""Drawn cameras in place of a dataset: what labels bring on top of a tiny network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resight.datasets.synthetic import draw_cameras
from resight.descriptors import Network
from resight.plans import Plan
from resight.protocols import for_dataset
from resight.reproduce import networks
from resight.reproduce.measuring import Bench
from resight.reproduce.networks import measure_network, page_of
from resight.workers.executors import local
from tiny_networks import embedder


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("networks")
    draw_cameras(folder / "drawn", n_people=28, size=(64, 32), seed=1)
    embedder(folder / "own.onnx", length=16)
    return folder


def measured(out: Path, patch: pytest.MonkeyPatch, said: list[str]) -> dict[str, Any]:
    patch.setattr(networks, "HAND_MADE", ("whos-star",))
    patch.setattr(networks, "PEOPLE", (8, 500))
    patch.setattr(networks, "RECIPE", Plan("kxqda", "quick"))  # a choice takes a minute of splits
    bench = Bench(out, out / "out", 1, local(1), said.append)
    places = ((str(out / "drawn"), "half-half"),)
    *_, document = measure_network(Network(out / "own.onnx"), bench, places)
    return document


def test_the_tables_of_a_network(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    document = measured(out, monkeypatch, said)
    [table] = document["tables"]
    rank1 = {row["method"]: row["summary"]["rank1"]["mean"] for row in table["rows"]}
    assert list(rank1) == [
        "network, cosine",
        "network, XQDA",
        "network, k-XQDA",
        "hand-made, recipe",
        "network + hand-made, recipe",
    ]
    assert [row["star"] for row in table["rows"]] == [True, True, True, False, True]
    curve = {point["people"]: point for point in table["curve"]}
    assert list(curve) == [14, 8]  # 500 people are not there
    better = max(curve[14]["cosine"], curve[14]["hand_made"])
    assert curve[14]["gain"]["mean_difference"] == pytest.approx(curve[14]["together"] - better)
    page = page_of(document)
    assert "| network, cosine *" in page
    assert "| hand-made, recipe  " in page
    assert np.round(curve[8]["together"], 1).astype(str) in page
    said.clear()
    assert measured(out, monkeypatch, said) == document
    assert said == []  # everything was kept


def test_the_cosine_learns_nothing(out: Path) -> None:
    network = Network(out / "own.onnx")
    bench = Bench(out, out / "out", 1, local(1), print)
    drawn = str(out / "drawn"), "half-half"
    assert networks._people(bench, *drawn) == (14, 14)
    figures = networks._cosine(network, bench, *drawn)
    sightings = bench.sightings(drawn[0])
    split = for_dataset(sightings, "half-half").splits[0]
    asked, searched = (
        network.transform([sightings.files()[row] for row in rows])
        for rows in (split.query, split.gallery)
    )
    cosine = asked @ searched.T / np.linalg.norm(searched, axis=1)  # the query's norm is no matter
    right = (
        sightings.persons[split.gallery][cosine.argmax(axis=1)] == sightings.persons[split.query]
    )
    assert figures["trials"][0]["rank1"] == pytest.approx(100 * right.mean())
