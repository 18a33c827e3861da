"""Finding people: with a network that the user brings, or with what OpenCV brings.

Networks are of the YOLO family. Two layouts are told apart by their shape. With A anchors (one a
cell of 8, 16 and 32 pixels) and C classes, YOLOX gives (1, A, 5 + C): offsets in cells, logarithms
of sizes, objectness and classes. YOLOv8, YOLO11 and their like give (1, 4 + C, A): centres and
sizes in pixels, and classes.

What OpenCV brings needs no file and is good enough to begin, not good enough to trust.

- "people": histogram of oriented gradients with a linear SVM (Dalal and Triggs, CVPR 2005), trained
  on upright pedestrians. It misses people who sit, are cut off or stand closer than about 100
  pixels high, and takes some trees and posts for people.
- "motion": a mixture of Gaussians for the background (Zivkovic, ICPR 2004). It finds whatever moves
  before a fixed camera, dogs and cars too; people who walk together become one box; people who
  stand still vanish.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from resight._progress import log
from resight.datasets.video.frames import Box, Picture
from resight.errors import InputError, unknown_name
from resight.images.colour import Floats
from resight.networks.preprocessing import Preprocessing
from resight.networks.session import Session

Detector = Callable[[Picture], list[Box]]

_CERTAIN = 0.5  # score of the SVM
_OVERLAP = 0.3  # share of the smaller box above which two boxes are one person
_LEARNED = 10  # frames that the background needs
_STRIDES = (8, 16, 32)
_SIZE = (640, 640)  # where the graph leaves it open
_SAME = 0.5  # intersection over union from which two boxes show one person
_DOUBTFUL = 0.1  # score below which a box is not worth following
_YOLOX = {"channels": "BGR", "scale": 1}
_LATER = {"channels": "RGB", "scale": 255}


def detector(name: str | Path, min_height: int, wanted: str = "person") -> Detector:
    """Make a detector: "people", "motion" or the path of an ONNX file that finds `wanted`."""
    if str(name).lower().endswith(".onnx"):
        network = Yolo(Path(name), wanted)
        return lambda image: [box for box in network(image) if box.h >= min_height]
    if name not in ("people", "motion"):
        raise unknown_name("detector", str(name), ("people", "motion", "FILE.onnx"))
    find = _people() if name == "people" else _motion()
    return lambda image: _apart([box for box in find(image) if box.h >= min_height])


def _people() -> Detector:
    hog = cv2.HOGDescriptor()
    hog.setSVMDetector(np.array(cv2.HOGDescriptor.getDefaultPeopleDetector()))

    def detect(image: Picture) -> list[Box]:
        found, scores = hog.detectMultiScale(
            image, winStride=(8, 8), padding=(8, 8), scale=1.05, hitThreshold=0.0
        )
        pairs = zip(np.reshape(found, (-1, 4)), np.ravel(scores), strict=True)
        ranked = sorted(pairs, key=lambda pair: -float(pair[1]))
        certain = [map(int, box) for box, score in ranked if score >= _CERTAIN]
        # Without half of the margin that the SVM's training windows had around people.
        return [Box(x + w // 8, y + h // 16, w - w // 4, h - h // 8) for x, y, w, h in certain]

    return detect


def _motion() -> Detector:
    background = cv2.createBackgroundSubtractorMOG2(history=200, detectShadows=True)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 9))
    seen = 0

    def detect(image: Picture) -> list[Box]:
        nonlocal seen
        seen += 1
        moving = (background.apply(image) == 255).astype(np.uint8)  # 127 marks shadows
        moving = cv2.morphologyEx(moving, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        moving = cv2.morphologyEx(moving, cv2.MORPH_CLOSE, kernel, iterations=2)
        if seen <= _LEARNED:
            return []
        outlines, _ = cv2.findContours(moving, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        boxes = [Box(x, y, w, h) for x, y, w, h in map(cv2.boundingRect, outlines)]
        upright = [box for box in boxes if 1.2 * box.w <= box.h <= 5 * box.w]
        return sorted(upright, key=lambda box: -box.w * box.h)

    return detect


def _apart(boxes: list[Box]) -> list[Box]:
    """Keep boxes, best first, that do not cover one kept before."""
    kept: list[Box] = []
    for box in boxes:
        if all(_shared(box, other) <= _OVERLAP for other in kept):
            kept.append(box)
    return kept


def _shared(a: Box, b: Box) -> float:
    w = min(a.x + a.w, b.x + b.w) - max(a.x, b.x)
    h = min(a.y + a.h, b.y + b.h) - max(a.y, b.y)
    return max(w, 0) * max(h, 0) / min(a.w * a.h, b.w * b.h)


class Yolo:
    """A detector in an ONNX file, of a class given by number or by its name in the metadata.

    Images are letterboxed, for YOLOX in BGR from 0 to 255, for the others in RGB from 0 to 1; a
    JSON beside the file may say otherwise (see `Preprocessing`).
    """

    def __init__(self, file: Path, wanted: str = "person") -> None:
        self.session = Session(file)
        known = zip(self.session.input.shape[2:], _SIZE, strict=True)
        plain: dict[str, Any] = {
            "size": [n or usual for n, usual in known],
            "mean": (0, 0, 0),
            "std": (1, 1, 1),
            "resize": "letterbox",
        }
        self.preprocessing = Preprocessing.beside(file, **plain)
        self._cells = _cells(self.preprocessing.size)
        # Nothing but a run tells the shape where the graph leaves it open.
        shape = self._run(np.zeros((*self.preprocessing.size, 3), np.uint8)).shape
        self._is_yolox = shape[1] == len(self._cells) and shape[2] > 5
        if not self._is_yolox and not (shape[2] == len(self._cells) and shape[1] > 4):
            raise InputError(
                f"the output of {file} has shape {shape}; with {len(self._cells)} anchors that is "
                "neither YOLOX (1, anchors, 5 + classes) nor YOLOv8 (1, 4 + classes, anchors). "
                "Export it without non-maximum suppression, or name another output in its JSON"
            )
        colours = _YOLOX if self._is_yolox else _LATER
        self.preprocessing = Preprocessing.beside(file, **plain, **colours)
        n_classes = shape[2] - 5 if self._is_yolox else shape[1] - 4
        layout = "YOLOX" if self._is_yolox else "YOLOv8"
        log.info("%s: %s, %s", file.name, layout, self.preprocessing)
        self._column = (5 if self._is_yolox else 4) + self._number(wanted, n_classes)

    def __call__(self, image: Picture) -> list[Box]:
        """Find boxes in an RGB picture, the surest first."""
        places, scores = self._decoded(self._run(image)[0])
        down, across = self.preprocessing.ratio(image)
        boxes = (places / [across, down, across, down]).round()
        kept = cv2.dnn.NMSBoxes(boxes.tolist(), scores.tolist(), _DOUBTFUL, _SAME)
        found = []
        for row in np.asarray(kept, int).tolist():
            x, y, w, h = map(int, boxes[row])
            found.append(Box(x, y, w, h, score=float(scores[row])))
        return found

    def _run(self, image: Picture) -> NDArray[Any]:
        name = self.preprocessing.output or self.session.outputs[0].name
        if name not in (names := [output.name for output in self.session.outputs]):
            raise unknown_name(f"output of {self.session.file}", name, names)
        [raw] = self.session.run(self.preprocessing(image)[None], [name])
        shaped = raw.ndim == 3 and len(raw) == 1
        if not shaped or not np.isfinite(raw).all():
            wrong = "values that are not finite" if shaped else f"an output of shape {raw.shape}"
            raise InputError(
                f"{self.session.file} gives {wrong}; a detector gives numbers of shape "
                "(1, anchors, values) or (1, values, anchors)"
            )
        return raw

    def _decoded(self, raw: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return left, top, width and height in pixels of the input, and scores."""
        rows = (raw if self._is_yolox else raw.T).astype(float)  # (A, values)
        scores = rows[:, self._column] * (rows[:, 4] if self._is_yolox else 1.0)
        sure = scores >= _DOUBTFUL
        rows, cells = rows[sure], self._cells[sure]
        centres, sizes = rows[:, :2], rows[:, 2:4]
        if self._is_yolox:
            centres = (centres + cells[:, :2]) * cells[:, 2:]
            sizes = np.exp(np.minimum(sizes, 10)) * cells[:, 2:]
        return np.hstack([centres - sizes / 2, sizes]), scores[sure]

    def _number(self, wanted: str, n_classes: int) -> int:
        """Return the number of a class that is given by number or name."""
        names = {0: "person"} if n_classes in (1, 80) else {}  # 80 are COCO's
        with suppress(KeyError, ValueError, SyntaxError, TypeError):
            # As Ultralytics writes it: {0: 'person', ...}
            names = dict(ast.literal_eval(self.session.metadata["names"]))
        for number in range(n_classes):
            if wanted in (str(number), names.get(number)):
                return number
        unknown = unknown_name("class", wanted, map(str, names.values()))
        raise InputError(f"{unknown}; or give a number from 0 to {n_classes - 1}")


def _cells(size: tuple[int, int]) -> Floats:
    """Column, row and stride of every anchor, (A, 3), in the order of the output."""
    grids = []
    for stride in _STRIDES:
        rows, columns = np.mgrid[: size[0] // stride, : size[1] // stride]
        grids.append(np.stack([columns, rows, np.full_like(rows, stride)], axis=2).reshape(-1, 3))
    return np.concatenate(grids).astype(float)
