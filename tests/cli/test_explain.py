from __future__ import annotations

import json
from pathlib import Path

import pytest

from resight import KXQDA
from resight.cli import main
from resight.datasets.synthetic import draw_cameras
from resight.gallery import Gallery
from resight.models.model import Model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of twelve people, and a gallery of them and twelve others."""
    folder = tmp_path_factory.mktemp("explain")
    drawn = draw_cameras(folder / "cameras", n_people=24, n_cameras=2, seed=1)
    model, learned = Model(("whos-star",), KXQDA()), drawn.persons <= "0012"
    features = model.describe(drawn.files())
    model.fit(features[learned], drawn.persons[learned], drawn.cameras[learned])
    model.save(folder / "model")
    Gallery.create(folder / "gallery", model).add(drawn)
    return folder


def pair(place: Path, first: str = "0015", second: str = "0015") -> list[str]:
    names = (f"camera-1/{first}/0001.png", f"camera-2/{second}/0001.png")
    return [str(place / "cameras" / name) for name in names]


def test_a_model_alone_compares_shares(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(place / "model"), *pair(place)]) == 0
    told = capsys.readouterr().out
    assert "of the distance comes from the strip at" in told
    assert "colour (whos-star hs)" in told
    assert "method: integrated gradients" in told


def test_a_gallery_compares_people(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(place / "gallery"), *pair(place), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["compared"] == "different people"
    assert told["usual_pairs"] > 4
    total = sum(band["contribution"] for band in told["bands"])
    assert total == pytest.approx(told["distance"], rel=1e-6)


def test_page(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "why.html"
    words = ["explain", str(place / "model"), *pair(place, "0015", "0020"), "--html", str(file)]
    assert main(words) == 0
    assert "camera-2/0020/0001.png" in file.read_text()
    assert f"wrote {file}" in capsys.readouterr().err


def test_mistakes(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.png").write_text("hello")
    first, second = pair(place)
    for words, says in (
        ([str(tmp_path / "nothing"), first, second], "nothing"),
        ([str(place / "model"), first, str(tmp_path / "text.png")], "not an image"),
        ([str(place / "model"), first, str(tmp_path / "gone.png")], "gone.png"),
    ):
        assert main(["explain", *words]) == 1
        assert says in capsys.readouterr().err
