"""From crops with a network, or from vectors alone, to a page, on each engine."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from resight import datasets
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.features import describing
from resight.features.store import FeatureStore
from resight.gallery import Gallery
from resight.gallery.crops import NO_IMAGE
from resight.networks import files
from resight.web.app import make_app
from resight.web.security import Guard
from resight.workers.executors import cluster, local
from tiny_networks import embedder

PEOPLE = 24
QUICK = ("--learner", "kxqda", "--jobs", "1")


@pytest.fixture(scope="module")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crops")
    draw_cameras(folder, n_people=PEOPLE, n_cameras=2, seed=6)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's own, with a network in it."""
    embedder(tmp_path / "own.onnx", length=24)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page(place: str, path: str) -> httpx.Response:
    """What the page of a gallery answers."""
    gallery = Gallery.open(place)
    transport = httpx.ASGITransport(app=make_app(gallery, Guard(gallery, login=False)))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path)

    try:
        return asyncio.run(ask())
    finally:
        gallery.close()


def answers(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Run a command with --json and return what it prints."""
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_crops_to_page(
    home: Path, crops: Path, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["network", "describe", "own.onnx", "--licence", "CC0"]) == 0
    assert "24" in capsys.readouterr().out
    words = ["fit", str(crops), "--descriptor", "own.onnx+whos-star", *QUICK]
    fitted = answers(capsys, *words, "--out", "model", "--embed-network")
    assert fitted["people"] == PEOPLE
    (home / "own.onnx").unlink()  # the model carries it, and so does the gallery
    assert main(["gallery", "create", uri, "--model", "model"]) == 0
    assert main(["gallery", "add", uri, str(crops), "--jobs", "1"]) == 0
    query = str(crops / "camera-1/0007/0001.png")
    capsys.readouterr()
    found = answers(capsys, "search", uri, query, "--camera", "camera-2", "--top", "3")
    assert "0007" in {hit["person"] for hit in found["queries"][0]["hits"]}
    gallery = Gallery.open(uri)
    first, second = gallery.view.table.ids[:2]
    gallery.close()
    assert "This is an occlusion" in page(uri, f"/why?like={first}&hit={second}").text


def test_vectors_to_page(home: Path, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but numbers, of any kind of thing: no image is ever there."""
    rng = np.random.default_rng(0)
    who = np.tile(np.arange(PEOPLE), 2)
    vectors = rng.normal(size=(PEOPLE, 12))[who] + 0.2 * rng.normal(size=(2 * PEOPLE, 12))
    np.save("cars.npy", vectors)
    lines = [f"car {n},gate-{1 + row // PEOPLE},{row},car-{row}" for row, n in enumerate(who)]
    Path("cars.csv").write_text("\n".join(["person,camera,time,id", *lines]) + "\n")
    header = ",".join("abcdefghijkl")
    np.savetxt("query.csv", vectors[:2], delimiter=",", header=header, comments="")
    assert main(["fit", "--features", "cars.npy", "--out", "model", *QUICK]) == 0
    assert main(["gallery", "create", uri, "--model", "model"]) == 0
    capsys.readouterr()
    added = answers(capsys, "gallery", "add", uri, "--features", "cars.npy")
    assert added["added"] == added["without_image"] == 2 * PEOPLE
    again = answers(capsys, "gallery", "add", uri, "--features", "cars.npy")
    assert (again["added"], again["already"]) == (0, 2 * PEOPLE)
    words = ["search", uri, "--features", "query.csv", "--camera", "gate-2", "--top", "1"]
    found = answers(capsys, *words)
    hits = [one["hits"][0] for one in found["queries"]]
    assert [one["image"] for one in found["queries"]] == ["query.csv#0", "query.csv#1"]
    assert [(hit["person"], hit["source"], hit["time"]) for hit in hits] == [
        ("car 0", f"car-{PEOPLE}", PEOPLE),
        ("car 1", f"car-{PEOPLE + 1}", PEOPLE + 1),
    ]
    assert main([*words, "--html", "found.html"]) == 0
    assert page(uri, f"/image/{hits[0]['id']}").content == NO_IMAGE
    assert hits[0]["id"] in page(uri, "/").text + page(uri, f"/search?like={hits[1]['id']}").text
    assert main(["gallery", "check", uri]) == 0
    assert main(["gallery", "forget", uri, "car 0"]) == 0
    for wrong, reason in {
        ("search", uri): "give images or --features",
        ("search", uri, "found.html", "--features", "query.csv"): "give images or --features",
        ("gallery", "create", "other", "--model", "model", "--no-descriptors"): "Store them",
    }.items():
        assert main(list(wrong)) in (1, 2)
        assert reason in capsys.readouterr().err.replace("\n", " ")


def test_vectors_do_not_go_into_a_gallery_of_images(
    home: Path, crops: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", str(crops), "--descriptor", "own.onnx", "--out", "model", *QUICK]) == 0
    assert main(["gallery", "create", "gallery", "--model", "model"]) == 0
    wide = np.random.default_rng(0).integers(0, 256, (40, 120, 3), np.uint8)
    assert Gallery.open("gallery").search(wide) == []  # a car is not refused as no standing person
    np.save("v.npy", np.ones((3, 24)))
    words = ["gallery", "add", "gallery", "--features", "v.npy"]
    assert main([*words, "--camera", "door"]) == 1
    assert "describes images itself (own)" in capsys.readouterr().err
    assert main(words) == 1
    assert "does not say cameras" in capsys.readouterr().err


def test_a_network_goes_where_descriptors_go(
    home: Path, crops: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evaluation, landmarks, and the choice of settings."""
    words = [str(crops), "--descriptor", "own.onnx", "--mirror", "--jobs", "1", "--store", "store"]
    result = answers(capsys, "evaluate", *words, "--learner", "kxqda")
    assert result["runs"][0]["descriptors"] == ["own"]
    chosen = answers(capsys, "fit", *words, "--landmarks", "16", "--out", "landmarks")
    assert chosen["chosen"]["reg"] > 0
    told = answers(capsys, "fit", *words, "--learner", "auto", "--no-calibrate", "--out", "auto")
    assert told["people"] == PEOPLE


def test_embedding_is_refused_early(
    home: Path, crops: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["fit", str(crops), "--out", "model", "--embed-network", "--descriptor"]
    assert main([*words, "own.onnx+gog"]) == 1
    assert "under which licence" in capsys.readouterr().err
    assert main([*words, "gog"]) == 2
    assert "none of the descriptors is a network" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails
    embedder(Path("new.onnx"), length=11)  # not open in this process yet
    assert main(["extract", str(crops), "--descriptor", "new.onnx"]) == 1
    assert "pip install 'resight[network]'" in capsys.readouterr().err


@pytest.mark.cluster
def test_a_cluster_reads_the_network_or_is_sent_it(
    home: Path, crops: Path, dask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    dask.scheduler()
    dask.worker()
    with cluster(dask.address, timeout=120):  # a busy machine may start it late
        pass
    words = ["fit", str(crops), "--descriptor", "own.onnx", "--cluster", dask.address]
    assert answers(capsys, *words, "--learner", "kxqda", "--out", "model")["people"] == PEOPLE
    assert main(["gallery", "create", "gallery", "--model", "model"]) == 0
    words = ["gallery", "add", "gallery", str(crops), "--cluster", dask.address]
    capsys.readouterr()
    assert answers(capsys, *words, "--store", str(home))["described"] == 2 * PEOPLE
    with cluster(dask.address) as workers:
        sightings = datasets.load(str(crops))
        by_path = FeatureStore("features").ensure(sightings, "own.onnx", executor=local(1)).features
        moved = embedder(home / "only-here.onnx", length=24)

        def hidden(path: Path, digest: str) -> bool:  # local, so that it travels by value
            return path.name != "only-here.onnx"

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(describing, "can_be_found", hidden)
            sent = FeatureStore("sent").ensure(sightings, str(moved), executor=workers)
        assert np.allclose(sent.features, by_path)

        def received() -> list[str]:
            from resight.networks import files

            return list(files._received)

        assert workers.submit(received).result() == [files.digest_of_network(moved)]
