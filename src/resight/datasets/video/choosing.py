"""The few crops of a track that are worth keeping: spread over it, each the best of its stretch."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from resight.datasets.video.boxes import Box
from resight.datasets.video.tracking import overlap

Picture = NDArray[np.uint8]


class Crop(NamedTuple):
    """A person cut out of a frame, with the name of the file it is to become."""

    name: str
    time: float
    track: str
    picture: Picture
    quality: float


class Choice:
    """Crops of one track, at most ``2 n`` of them in memory however long it gets.

    Stretches of equal length keep their best crop; when there are ``2 n``, neighbours are joined,
    so that n are left in the end.
    """

    def __init__(self, n: int) -> None:
        self._n, self._length, self._filled = n, 1, 0
        self._best: list[Crop] = []

    def add(self, crop: Crop) -> None:
        """Look at the track's next crop."""
        if self._filled % self._length:
            self._best[-1] = max(self._best[-1], crop, key=attrgetter("quality"))
        else:
            if len(self._best) == 2 * self._n:
                pairs = zip(self._best[::2], self._best[1::2], strict=True)
                self._best = [max(pair, key=attrgetter("quality")) for pair in pairs]
                self._length *= 2
            self._best.append(crop)
        self._filled += 1

    def chosen(self) -> list[Crop]:
        """Return at most n crops in the order of time."""
        parts = np.array_split(np.arange(len(self._best)), min(self._n, len(self._best)))
        return [max((self._best[i] for i in part), key=attrgetter("quality")) for part in parts]


def quality(picture: Picture, box: Box, others: list[Box]) -> float:
    """Rate a crop: large, sharp, inside the frame and not overlapped by somebody else's box."""
    small = cv2.resize(picture, (48, 96), interpolation=cv2.INTER_AREA)  # sharpness at one size
    sharpness = float(cv2.Laplacian(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), cv2.CV_64F).std())
    area = picture.shape[0] * picture.shape[1]
    overlaps = overlap(np.array([box[:4]], float), np.array([b[:4] for b in others], float))
    free = 1 - np.sort(overlaps[0])[-2] if len(others) > 1 else 1.0  # the largest is the box itself
    return float(np.sqrt(area) * area / (box.w * box.h) * sharpness * free)
