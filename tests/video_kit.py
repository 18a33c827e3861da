"""Drawn scenes with people who cross, where they really are, and how well they are followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from scipy.optimize import linear_sum_assignment

from resight.datasets._clothing import Appearance
from resight.datasets._drawing import Figure, Pose
from resight.datasets.synthetic import _scene
from resight.datasets.video.frames import Box
from resight.datasets.video.tracking import overlap

HEIGHT, WIDTH = 360, 640
# Three people, the farthest first: feet, body height, where they come from and go to. The first
# meets both of the others, and the last is overtaken by the second.
PATHS = ((0.80, 0.55, 0.05, 0.95), (0.88, 0.60, 0.95, 0.05), (0.96, 0.65, 0.70, 0.02))


def crossing(
    n_frames: int, people: Sequence[int] = (3, 11, 20)
) -> Iterator[tuple[np.ndarray, list[Box]]]:
    """Draw three people who cross; yield each picture with their boxes, hidden parts included."""
    backdrop = cv2.resize(_scene(np.random.default_rng(people[0])), (WIDTH, HEIGHT))
    looks = [Appearance(np.random.default_rng([0, 1, person])) for person in people]
    for t in range(n_frames):
        canvas, truth = np.asarray(backdrop, np.float32).copy(), []
        for number, (feet, body, begin, end) in enumerate(PATHS):
            pose = Pose(
                yaw=0.4 * np.pi * np.sign(end - begin),
                phase=40 * t / n_frames + number,
                stride=0.45,
                elevation=0.12,
                centre=(begin + (end - begin) * t / n_frames) * WIDTH,
                feet=feet * HEIGHT,
                scale=body * HEIGHT,
                lean=0.0,
            )
            before = canvas.copy()
            Figure(canvas, looks[number], pose).paint()
            rows, columns = np.nonzero((canvas != before).any(axis=2))
            low, high = (columns.min(), rows.min()), (columns.max() + 1, rows.max() + 1)
            truth.append(Box(*map(int, low), *map(int, np.subtract(high, low)), str(number)))
        yield (255 * np.clip(canvas, 0, 1)).astype(np.uint8), truth


def write_video(file: Path, pictures: Sequence[np.ndarray], rate: float, codec: str) -> Path:
    """Write RGB pictures as a video."""
    size = pictures[0].shape[1::-1]
    writer = cv2.VideoWriter(str(file), cv2.VideoWriter_fourcc(*codec), rate, size)
    for picture in pictures:
        writer.write(np.ascontiguousarray(picture[..., ::-1]))
    writer.release()
    return file


def identity_switches(truths: Sequence[list[Box]], tracked: Sequence[list[Box]]) -> int:
    """Count how often a person's track changes, as CLEAR MOT does.

    A box may show a person from an intersection over union of 0.5; a pair of the frame before
    stays a pair while it can, and the others are assigned so that they overlap most.
    """
    last: dict[str, str] = {}
    switches = 0
    for people, boxes in zip(truths, tracked, strict=True):
        if not people or not boxes:
            continue
        overlaps = overlap(
            *(np.array([box[:4] for box in part], float) for part in (people, boxes))
        )
        stays = [[last.get(person.track) == box.track for box in boxes] for person in people]
        score = np.where(overlaps >= 0.5, overlaps + 10 * np.array(stays), 0)
        for i, j in zip(*linear_sum_assignment(score, maximize=True), strict=True):
            if score[i, j] > 0:
                person = people[i].track
                switches += last.get(person, boxes[j].track) != boxes[j].track
                last[person] = boxes[j].track
    return switches
