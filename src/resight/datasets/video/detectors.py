"""Finding people: with a network that the user brings (see `yolo`), or with what OpenCV brings.

The latter need no file and are good enough to begin, not good enough to trust.

- "people": histogram of oriented gradients with a linear SVM (Dalal and Triggs, CVPR 2005), trained
  on upright pedestrians. It misses people who sit, are cut off or stand closer than about 100
  pixels high, and takes some trees and posts for people.
- "motion": a mixture of Gaussians for the background (Zivkovic, ICPR 2004). It finds whatever moves
  before a fixed camera, dogs and cars too; people who walk together become one box; people who
  stand still vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.datasets.video.frames import Box
from resight.errors import unknown_name

Picture = NDArray[np.uint8]
Detector = Callable[[Picture], list[Box]]

_CERTAIN = 0.5  # score of the SVM
_OVERLAP = 0.3  # share of the smaller box above which two boxes are one person
_LEARNED = 10  # frames that the background needs


def detector(name: str | Path, min_height: int, wanted: str = "person") -> Detector:
    """Make a detector: "people", "motion" or the path of an ONNX file that finds `wanted`."""
    if str(name).lower().endswith(".onnx"):
        from resight.datasets.video.yolo import Yolo

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
        return [_tightened(*map(int, box)) for box, score in ranked if score >= _CERTAIN]

    return detect


def _tightened(x: int, y: int, w: int, h: int) -> Box:
    """Take off half of the margin that the SVM's training windows had around people."""
    return Box(x + w // 8, y + h // 16, w - w // 4, h - h // 8)


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
