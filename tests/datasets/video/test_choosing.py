from __future__ import annotations

import cv2
import numpy as np
import pytest

from resight.datasets.video.cut import Choice, Crop, quality
from resight.datasets.video.frames import Box

PICTURE = np.zeros((8, 4, 3), np.uint8)


def chosen(n: int, qualities: list[float]) -> list[int]:
    choice = Choice(n)
    for number, value in enumerate(qualities):
        choice.add(Crop(str(number), float(number), "1", PICTURE, value))
        assert len(choice._best) <= 2 * n
    return [int(crop.time) for crop in choice.chosen()]


@pytest.mark.parametrize("length", [1, 3, 5, 9, 10, 11, 47, 1000])
def test_crops_are_spread_over_the_track(length: int) -> None:
    numbers = chosen(5, [1.0] * length)
    assert len(numbers) == min(5, length)
    assert numbers == sorted(set(numbers))
    # every fifth of a long track is within two fifths of a crop that is kept
    nearest = np.abs(np.arange(length)[:, None] - np.array(numbers)).min(1)
    assert nearest.max() <= max(0.4 * length, 1)


def test_the_best_of_each_stretch() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(64)
    values[[3, 20, 40, 60]] += 10
    assert {3, 20, 40, 60} <= set(chosen(5, values.tolist()))


def test_quality_prefers_large_sharp_whole_and_free_people() -> None:
    rng = np.random.default_rng(0)
    sharp = rng.integers(0, 255, (160, 80, 3), np.uint8)
    sharp = cv2.resize(cv2.resize(sharp, (20, 40)), (80, 160), interpolation=cv2.INTER_NEAREST)
    box = Box(0, 0, 80, 160)
    best = quality(sharp, box, [box])
    assert quality(cv2.GaussianBlur(sharp, (0, 0), 4), box, [box]) < best
    assert quality(cv2.resize(sharp, (40, 80)), Box(0, 0, 40, 80), [Box(0, 0, 40, 80)]) < best
    assert quality(sharp[:, :40], Box(-40, 0, 80, 160), [Box(-40, 0, 80, 160)]) < best
    assert quality(sharp, box, [box, Box(40, 0, 80, 160)]) < best
    assert quality(sharp, box, [box, Box(400, 0, 80, 160)]) == best
