"""Files that resight 0.1.0 wrote (tests/data/v0.1) open, and say what they said."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import resight
from resight.cli import main
from resight.datasets import load as sightings_of
from resight.descriptors import WHOS
from resight.features.store import FeatureStore
from resight.models.model import Model
from resight.saving import MANIFEST, RAW_SCHEMA, SCHEMA
from resight.workers.executors import InProcess

ARCHIVES = Path(__file__).parent / "data" / "v0.1"
LEARNERS = [
    *("auto", "euclidean", "itml", "kissme", "kkissme", "klfda", "kmfa", "knfst", "kxqda"),
    *("kxqda-landmarks", "kxqda-poly", "lfda", "lmnn", "mfa", "mlapg", "nfst", "xqda"),
]


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(ARCHIVES / name) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("learners.tar.xz", tmp_path_factory.mktemp("learners"))


@pytest.fixture(scope="module")
def expected(old: Path) -> Any:
    return np.load(old / "expected.npz", allow_pickle=False)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    return unpacked("flow.tar.xz", tmp_path) / "flow"


def test_every_learner_of_then_is_here(old: Path) -> None:
    assert sorted(folder.name for folder in (old / "learners").iterdir()) == LEARNERS


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_gives_the_same_distances(
    name: str, old: Path, expected: Any, tmp_path: Path
) -> None:
    folder = old / "learners" / name
    assert json.loads((folder / MANIFEST).read_text())["schema"] == RAW_SCHEMA
    learner = resight.load(folder)
    D = learner.distances(expected["Q"], expected["G"])
    np.testing.assert_allclose(D, expected[f"d_{name}"], rtol=1e-12)
    learner.save(tmp_path / "now")
    assert json.loads((tmp_path / "now" / MANIFEST).read_text())["schema"] == SCHEMA
    again = resight.load(tmp_path / "now")
    assert vars(again).keys() == vars(learner).keys()
    np.testing.assert_array_equal(again.distances(expected["Q"], expected["G"]), D)


def test_people_are_added_to_a_landmark_model_of_then(old: Path, expected: Any) -> None:
    learner = resight.load(old / "learners" / "kxqda-landmarks")
    fresh = type(learner)(**learner.get_params())
    fresh.fit(expected["X"], expected["persons"], expected["cameras"])
    X = np.random.default_rng(0).normal(size=(4, 12))
    for one in (learner, fresh):
        one.add_people(X, ["new 1", "new 1", "new 2", "new 2"], ["north", "south"] * 2)
    assert learner.training_fingerprint_ == fresh.training_fingerprint_
    D = fresh.distances(expected["Q"], expected["G"])
    np.testing.assert_allclose(learner.distances(expected["Q"], expected["G"]), D, rtol=1e-9)


def test_a_model_of_own_vectors_gives_the_same_distances(old: Path, expected: Any) -> None:
    model = resight.load(old / "model-own-vectors")
    assert isinstance(model, Model)
    D = model.distances(expected["Q"], expected["G"])
    np.testing.assert_allclose(D, expected["d_model"], rtol=1e-12)
    assert model.calibration.n_people == 24
    probabilities = model.probability(D)
    assert probabilities is not None
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_a_model_of_images_gives_the_same_distances_on_the_features_of_then(flow: Path) -> None:
    model = resight.load(flow / "model")
    sightings = sightings_of(flow / "cameras")
    features = FeatureStore(flow / "features").ensure(sightings, "whos-star").features
    rows = {str(path): row for row, path in enumerate(sightings.paths)}
    searches = json.loads((flow / "expected.json").read_text())["searches"]
    for image, hits in searches.items():
        query = features[[rows[image.removeprefix("cameras/")]]]
        distances = dict(zip(rows, model.distances(query, features)[0].tolist(), strict=True))
        for _, distance, _, person, camera in hits:
            # the gallery of then kept embeddings in float32
            found = distances[f"{camera}/{person}/0001.png"]
            assert found == pytest.approx(distance, rel=1e-5, abs=1e-4)


def test_the_feature_store_of_then_is_used_as_it_is(
    flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_: Any, **__: Any) -> None:
        raise AssertionError("an image is described again")

    monkeypatch.setattr(WHOS, "describe_once", computed)
    (table,) = (flow / "features").glob("*/*.npy")
    written = {file: file.stat().st_mtime_ns for file in (flow / "features").rglob("*.*")}
    store = FeatureStore(flow / "features")
    found = store.ensure(sightings_of(flow / "cameras"), "whos-star", executor=InProcess())
    np.testing.assert_array_equal(found.features, np.load(table))
    now = {file: file.stat().st_mtime_ns for file in (flow / "features").rglob("*.*")}
    assert now == written


@pytest.mark.parametrize("pictures", [[], ["--data", "cameras"]])
def test_the_result_of_then_becomes_a_report(
    flow: Path, pictures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(flow)
    assert json.loads((flow / "result" / "result.json").read_text())["schema"] == "resight.result/1"
    assert main(["report", "result", *pictures]) == 0
    page = (flow / "result" / "report.html").read_text()
    assert "<td>k-XQDA, whos-star</td>\n<td>51.0 <small>" in page
    assert ("data:image" in page) == bool(pictures)
