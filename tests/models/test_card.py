"""A fitted model says what it was learned from, how good it is and what its limits are."""

from __future__ import annotations

import numpy as np
import pytest

import resight
import tiny_networks
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.models.card import held_out_rank1


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    return draw_cameras(tmp_path_factory.mktemp("card") / "town", n_people=30)


def test_fit_writes_it_and_report_shows_it(town, capsys):
    place = town.root.parent
    words = ["--descriptor", "whos-star", "--learner", "xqda", "--out", str(place / "model")]
    assert main(["fit", str(town.root), *words, "--store", str(place / "features")]) == 0
    capsys.readouterr()
    assert main(["report", str(place / "model")]) == 0
    shown = capsys.readouterr().out
    assert shown.strip() == (place / "model" / "card.md").read_text("utf-8").strip()
    assert "| data | town: 60 sightings of 30 people |" in shown
    assert "2 (sightings: camera-1 30, camera-2 30)" in shown
    assert "| descriptors | whos-star: 2,960 numbers |" in shown
    assert "none, settings were given" in shown
    assert "## Limits" in shown
    assert not any(person in shown for person in np.unique(town.persons))


def test_its_figure_is_of_people_the_metric_did_not_see(town):
    # Vectors that say nothing but who was trained on: held out, nobody can be found.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(town), 40))
    model = resight.Model((), resight.KXQDA(), normalize=False)
    model.fit(X, town.persons, town.cameras)
    assert model.learner.score(X, town.persons, cameras=town.cameras) == 1.0
    assert held_out_rank1(model, X, town.persons, town.cameras) < 0.6


def test_a_network_is_listed_with_its_licence(town, tmp_path):
    file = tiny_networks.embedder(tmp_path / "cells.onnx")
    (tmp_path / "cells.json").write_text('{"licence": "MIT", "training_data": "nothing"}')
    model = resight.fit(
        town, descriptor=str(file), learner="xqda", store=tmp_path / "features", jobs=1
    )
    assert "| network cells | licence MIT; source not stated; trained on nothing |" in model.card
    assert "rank 1 " in model.card


def test_it_is_kept_and_does_not_outlive_its_model(town, tmp_path):
    features = np.random.default_rng(1).normal(size=(len(town), 20))
    bare = resight.Model((), resight.XQDA(), normalize=False)
    bare.fit(features, town.persons, town.cameras)
    bare.card = "# Model card\n"
    bare.save(tmp_path / "model")
    assert resight.load(tmp_path / "model").card == "# Model card\n"
    bare.card = ""
    bare.save(tmp_path / "model")
    assert not (tmp_path / "model" / "card.md").exists()
    assert main(["report", str(tmp_path / "model")]) == 1
