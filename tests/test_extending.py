"""Each recipe of CONTRIBUTING.md, followed with a toy (`toys`): a file, and one line elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

import resight
import toys
from resight import datasets, descriptors
from resight.cli import main
from resight.registry import LEARNERS

HERE = Path(__file__).parent
FLOW = ["--root", "data", "--descriptor", "mean-colour", "--learner", "within-scale"]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    toys.register()
    yield
    del LEARNERS["within-scale"], descriptors.DESCRIPTORS["mean-colour"], datasets.DATASETS["yard"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the images of the dataset: 12 people, each of a colour, by two cameras."""
    rng = np.random.default_rng(0)
    (tmp_path / "data" / "yard-images").mkdir(parents=True)
    colours = rng.integers(0, 256, size=(12, 4, 1, 3))
    for camera in (1, 2):
        for person, strips in enumerate(colours):
            image = np.repeat(np.repeat(strips, 8, axis=0), 16, axis=1)
            noisy = np.clip(image + rng.normal(0, 20, size=image.shape), 0, 255).astype(np.uint8)
            name = f"cam{camera}_{person:04d}.png"
            Image.fromarray(noisy).save(tmp_path / "data" / "yard-images" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_are_exported() -> None:
    assert resight.WithinScale is toys.WithinScale
    assert descriptors.MeanColour is toys.MeanColour
    assert descriptors.descriptor("mean-colour", mirror=True).mirror


def test_the_command_line_knows_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--json"]) == 0
    assert "yard" in [one["name"] for one in json.loads(capsys.readouterr().out)["datasets"]]
    assert main(["evaluate", "yard", *FLOW, "--store", "features", "--jobs", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dataset"]["sightings"] == 24
    (run,) = document["runs"]
    assert (run["learner"], run["descriptors"]) == ("within-scale", ["mean-colour"])
    assert run["summary"]["rank1"]["mean"] > 50


def test_a_model_of_them_is_saved_and_loaded(place: Path) -> None:
    assert main(["fit", "yard", *FLOW, "--store", "features", "--out", "model"]) == 0
    model = resight.load("model")
    assert type(model.learner) is toys.WithinScale
    images = sorted((place / "data" / "yard-images").iterdir())
    features = model.describe(images)
    assert features.shape == (24, 12)
    assert (model.distances(features[:12], features[12:]).argmin(axis=1) == np.arange(12)).all()


def test_the_common_checks_hold_for_them() -> None:
    checks = [str(HERE / "common" / f"test_{what}.py") for what in ("learners", "descriptors")]
    options = ["-q", "-p", "no:cacheprovider", "-k", "WithinScale or mean-colour", *checks]
    run = f"import sys, pytest, toys; toys.register(); sys.exit(pytest.main({options!r}))"
    paths = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", run],
        cwd=HERE.parent,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.rsplit(" passed", 1)[0].split()[-1]) > 80


RECIPES = ("descriptor", "learner", "dataset", "gallery engine", "route of the page", "candidate")


def test_contributing_has_each_recipe() -> None:
    text = (HERE.parent / "CONTRIBUTING.md").read_text("utf-8").lower()
    for kind in RECIPES:
        assert re.search(rf"^### .*{kind}", text, re.M), kind


def test_a_gallery_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from resight.gallery import Gallery, gallery, rebuilding
    from resight.gallery.engines import connect as others

    def connect(uri: str | Path) -> Any:  # as the recipe's branch in `engines.connect` does
        text = str(uri)
        if text.startswith("double://"):
            return toys.DoubleEngine(text.removeprefix("double://"))
        return others(uri)

    for module in (rebuilding, gallery):
        monkeypatch.setattr(module, "connect", connect)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 8)).astype(np.float32)
    persons, cameras = np.tile(np.arange(10).astype(str), 2), np.repeat(["a", "b"], 10)
    model = resight.Model((), resight.Euclidean(), normalize=False).fit(X, persons, cameras)
    sightings = resight.Sightings(np.array([f"{i}.png" for i in range(20)]), persons, cameras)
    found = {}
    for name, uri in (("double", f"double://{tmp_path / 'double'}"), ("sqlite", tmp_path / "s")):
        made = Gallery.create(uri, model)
        assert isinstance(made.engine, toys.DoubleEngine) == (name == "double")
        made.add(sightings, described=made.own_vectors(X), imageless=True)
        table = f"embeddings_{made.view.manifest.current.number}"
        [(stored,)] = made.engine.ask(f"SELECT max(length(vector)) FROM {table}")
        assert stored == 8 * (8 if name == "double" else 4)
        made.close()
        again = Gallery.open(uri)
        hits = again.search(again.own_vectors(X[:1]), k=5)
        found[name] = [(hit.person, hit.camera, hit.distance) for hit in hits]
        again.close()
    assert found["double"] == found["sqlite"]


def test_a_route_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import toy_route
    from resight.gallery import Gallery
    from resight.web import app
    from resight.web.security import Guard

    monkeypatch.setattr(app, "_PARTS", (*app._PARTS, toy_route))
    assert ("GET", "/count.json", "viewer") in app.routes_and_roles()
    X = np.eye(4, dtype=np.float32)
    model = resight.Model((), resight.Euclidean(), normalize=False)
    gallery = Gallery.create(tmp_path / "g", model.fit(X, list("aabb"), list("1212")))
    for login, status in ((True, 401), (False, 200)):
        page = httpx.ASGITransport(app.make_app(gallery, Guard(gallery, login=login)))

        async def ask(page: httpx.ASGITransport = page) -> httpx.Response:
            async with httpx.AsyncClient(transport=page, base_url="http://127.0.0.1") as visitor:
                return await visitor.get("/count.json")

        answer = asyncio.run(ask())
        assert answer.status_code == status
    assert answer.json() == {"sightings": 0}


def test_a_candidate_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    from resight.tuning import candidates

    widened = (*candidates.AUTO_CURVED, toys.CANDIDATE)
    monkeypatch.setattr(candidates, "AUTO_CURVED", widened)
    rng = np.random.default_rng(0)
    persons, cameras = np.tile(np.arange(30), 2), np.repeat(["a", "b"], 30)
    X = rng.normal(size=(30, 20))[persons] + 0.5 * rng.normal(size=(60, 20))
    learner = resight.AutoKXQDA(budget=60).fit(X, persons, cameras)
    tried = [kernel for one in learner.candidates_ for kernel in one["kernels"]]
    assert toys.CANDIDATE.width in {kernel["width"] for kernel in tried}
