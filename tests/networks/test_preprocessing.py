from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from resight.errors import InputError
from resight.networks.preprocessing import Preprocessing


def test_values_by_hand() -> None:
    image = np.tile(np.array([255, 0, 51], np.uint8), (8, 4, 1))
    values = Preprocessing(size=(8, 4))(image)
    assert (values.shape, values.dtype) == ((3, 8, 4), np.float32)
    hand = (np.array([1.0, 0.0, 0.2]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert np.allclose(values[:, 3, 2], hand, atol=1e-6)
    plain = Preprocessing(size=(8, 4), channels="BGR", scale=1, mean=(0,) * 3, std=(1,) * 3)
    assert plain(image)[:, 0, 0].tolist() == [51, 0, 255]


def test_letterbox_keeps_the_aspect_ratio() -> None:
    way = Preprocessing(size=(10, 10), resize="letterbox", scale=1, mean=(0,) * 3, std=(1,) * 3)
    image = np.full((40, 20, 3), 7, np.uint8)
    assert way.ratio(image) == (0.25, 0.25)
    values = way(image)[0]
    assert (values[:, :5] == 7).all()
    assert (values[:, 5:] == 114).all()
    assert Preprocessing(size=(10, 10)).ratio(image) == (0.25, 0.5)


def test_json_beside_the_network(tmp_path: Path) -> None:
    network, file = tmp_path / "n.onnx", tmp_path / "n.json"
    assert Preprocessing.beside(network, size=(4, 2)).channels == "RGB"
    file.write_text(json.dumps({"channels": "BGR", "licence": "MIT"}))
    way = Preprocessing.beside(network, size=(4, 2), channels="RGB", scale=1)
    assert (way.channels, way.scale, way.licence) == ("BGR", 1, "MIT")
    for text, words in {
        '{"chanels": "RGB"}': "chanels.*Fields: size, channels",
        '{"scale": 0}': "scale: .*greater than 0",
        "[1]": "not a JSON object",
        "{": "not a JSON object",
    }.items():
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            Preprocessing.beside(network, size=(4, 2))
