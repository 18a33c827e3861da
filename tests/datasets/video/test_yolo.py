from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from resight.datasets.video.detectors import Yolo
from resight.datasets.video.frames import Box
from resight.errors import InputError
from tiny_networks import badge_detector, detector, node, save

ANCHORS = 12 * 8 + 6 * 4 + 3 * 2  # of 96 x 64 pixels
PICTURE = np.zeros((192, 64, 3), np.uint8)  # twice as high as the network's input


def yolox(n_classes: int = 80) -> np.ndarray:
    """Nothing but one box: in column 2 and row 1 of the cells of 16 pixels."""
    output = np.zeros((1, ANCHORS, 5 + n_classes))
    output[0, 12 * 8 + 4 + 2, :5] = [0.25, 0.5, np.log(1.0), np.log(2.0), 0.9]
    return output


def test_yolox_boxes_by_hand(tmp_path: Path) -> None:
    output = yolox()
    output[0, 12 * 8 + 4 + 2, 5] = 0.8  # a person
    [box] = Yolo(detector(tmp_path / "n.onnx", output))(PICTURE)
    # centre (2.25, 1.5) cells = (36, 24) pixels, 16 x 32 pixels; the picture is twice as large
    assert box[:4] == (56, 16, 32, 64)
    assert box.score == pytest.approx(0.72)
    assert Yolo(tmp_path / "n.onnx", "2")(PICTURE) == []


def test_yolov8_boxes_by_hand(tmp_path: Path) -> None:
    output = np.zeros((1, 4 + 80, ANCHORS))
    output[0, :4, 7], output[0, 4 + 2, 7] = [36, 24, 16, 32], 0.6  # a car
    file = detector(tmp_path / "n.onnx", output, metadata={"names": "{0: 'person', 2: 'car'}"})
    assert Yolo(file)(PICTURE) == []
    for wanted in ("car", "2"):
        [box] = Yolo(file, wanted)(PICTURE)
        assert box[:4] == (56, 16, 32, 64)
        assert box.score == pytest.approx(0.6)


def test_preprocessing_of_each_layout_and_by_json(tmp_path: Path) -> None:
    file = detector(tmp_path / "n.onnx", yolox())
    way = Yolo(file).preprocessing
    assert (way.channels, way.scale, way.mean, way.resize) == ("BGR", 1, (0, 0, 0), "letterbox")
    (tmp_path / "n.json").write_text(json.dumps({"resize": "stretch", "channels": "RGB"}))
    way = Yolo(file).preprocessing
    assert (way.channels, way.scale, way.resize) == ("RGB", 1, "stretch")
    way = Yolo(detector(tmp_path / "m.onnx", np.zeros((1, 84, ANCHORS)))).preprocessing
    assert (way.channels, way.scale) == ("RGB", 255)


def test_one_of_two_boxes_on_one_person_is_kept(tmp_path: Path) -> None:
    output = np.zeros((1, 5, ANCHORS))  # one class: people
    output[0, :, 0] = [20, 30, 20, 40, 0.5]
    output[0, :, 1] = [22, 31, 20, 40, 0.9]
    output[0, :, 2] = [50, 30, 20, 40, 0.4]
    found = Yolo(detector(tmp_path / "n.onnx", output))(np.zeros((96, 64, 3), np.uint8))
    assert [box.score for box in found] == [pytest.approx(0.9), pytest.approx(0.4)]
    assert found[0][:4] == Box(12, 11, 20, 40)[:4]


def test_it_sees_the_picture(tmp_path: Path) -> None:
    find = Yolo(badge_detector(tmp_path / "n.onnx", (96, 160), (60, 30)))
    picture = np.full((96, 160, 3), 90, np.uint8)
    picture[40:48, 100:108] = (255, 0, 0)  # RGB
    picture[40:48, 30:38] = (0, 0, 255)  # a blue badge is none
    [box] = find(picture)
    assert abs(box.x + box.w / 2 - 104) <= 4
    assert abs(box.y + box.h / 2 - 44) <= 4


def test_classes(tmp_path: Path) -> None:
    metadata = {"names": "{0: 'ant', 1: 'bee', 2: 'fly'}"}
    file = detector(tmp_path / "n.onnx", np.zeros((1, 7, ANCHORS)), metadata=metadata)
    for wanted in ("bee", "1"):
        assert Yolo(file, wanted)._column == 5
    with pytest.raises(InputError, match=r"did you mean 'bee'.*a number from 0 to 2"):
        Yolo(file, "be")
    with pytest.raises(InputError, match="give a number from 0 to 2"):
        Yolo(file, "3")
    detector(file, np.zeros((1, 7, ANCHORS)), metadata={"names": "not a dictionary"})
    with pytest.raises(InputError, match=r"class 'person'.*give a number from 0 to 2"):
        Yolo(file)


def test_what_is_no_detector(tmp_path: Path) -> None:
    for output, words in {
        (1, 300, 6): "neither YOLOX .* nor YOLOv8",
        (1, ANCHORS): "an output of shape",
        (2, ANCHORS, 85): "an output of shape",
    }.items():
        with pytest.raises(InputError, match=words):
            Yolo(detector(tmp_path / "n.onnx", np.zeros(output)))
    with pytest.raises(InputError, match="not finite"):
        Yolo(detector(tmp_path / "n.onnx", np.full((1, ANCHORS, 85), np.nan)))
    (tmp_path / "n.json").write_text('{"output": "boxes"}')
    with pytest.raises(InputError, match=r"unknown output .*'boxes'.*Valid: found"):
        Yolo(tmp_path / "n.onnx")
    (tmp_path / "n.json").write_text('{"size": [32, 32]}')
    with pytest.raises(InputError, match="failed on a batch of shape"):
        Yolo(tmp_path / "n.onnx")


def test_an_open_size_is_the_usual_one_or_that_of_the_json(tmp_path: Path) -> None:
    """Where the graph takes any size, boxes are still in pixels of the picture."""
    nodes = [node("Relu", "images", "y"), node("Reshape", "y shape", "found")]
    weights = {"shape": np.array([1, -1, 3])}
    file = save(tmp_path / "n.onnx", nodes, weights, (1, 3, "h", "w"), {"found": (1, "anchors", 3)})
    (tmp_path / "n.json").write_text('{"size": [32, 32]}')
    with pytest.raises(InputError, match="with 21 anchors"):  # 16 + 4 + 1
        Yolo(file)
    (tmp_path / "n.json").unlink()
    with pytest.raises(InputError, match="with 8400 anchors"):
        Yolo(file)
