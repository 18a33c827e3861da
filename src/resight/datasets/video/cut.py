"""Cutting people out of frames into ``<camera>/*.png`` and a table with their times."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from resight._files import atomic_write
from resight.datasets.sightings import Sightings
from resight.datasets.table import read_table, write_table
from resight.datasets.video.boxes import Box, read_boxes
from resight.datasets.video.detectors import Detector, detector
from resight.datasets.video.frames import Frame, Picture, frames
from resight.errors import InputError
from resight.images.boxes import MIN_HEIGHT, MIN_WIDTH, inside
from resight.validation import MAX_SIDE, check_count, check_name, check_seconds

TABLE = "sightings.csv"


@dataclass(frozen=True)
class Cut:
    """What came out: how many crops of how many frames, and boxes too small or outside."""

    crops: int
    frames: int
    left_out: int
    table: Path


def cut(
    source: Path,
    out: Path,
    camera: str,
    *,
    boxes: Path | None = None,
    find: str = "people",
    every: int = 1,
    fps: float | None = None,
    start: float = 0.0,
    min_height: int = 64,
    on_frame: Callable[[int], None] | None = None,
) -> Cut:
    """Cut people out of a video or a folder of frames.

    Parameters
    ----------
    source : Path
        Video file or folder of frames.
    out : Path
        Crops go to ``out/<camera>/``; ``out/sightings.csv`` gets a line for each of them. Several
        cameras can share one folder.
    camera : str
    boxes : Path, optional
        MOT or CSV file of boxes; without it `find` ("people" or "motion") finds them.
    every : int
        Take one frame of so many (with `boxes`: of those that have one).
    start : float
        Time of the first frame, in seconds (since 1970, if times shall be dates).
    """
    if not check_name(camera, "camera", 80) or camera.startswith(".") or set(camera) & {*"/\\"}:
        raise InputError(f"camera {camera!r}: use a name without '/' that does not start with '.'")
    check_seconds(start, "start")
    boxes_at = _boxes_at(boxes, find, check_count(min_height, "min_height", MIN_HEIGHT, MAX_SIDE))
    rows: list[tuple[str, float, str]] = []
    seen = left_out = 0
    for frame in frames(source, every, fps):
        seen += 1
        for number, box in enumerate(boxes_at(frame)):
            picture = inside(frame.image, box[:4])
            if picture.shape[0] < MIN_HEIGHT or picture.shape[1] < MIN_WIDTH:
                left_out += 1
                continue
            name = f"{camera}/{_stem(source)}-{frame.number:06d}-{number:02d}.png"
            _write(out / name, picture)
            time = np.nan if frame.time is None else start + frame.time
            rows.append((name, time, f"{_stem(source)}-{box.track}" if box.track else ""))
        if on_frame is not None:
            on_frame(1)
    _enter(out / TABLE, camera, rows)
    return Cut(len(rows), seen, left_out, out / TABLE)


def _boxes_at(boxes: Path | None, find: str, min_height: int) -> Callable[[Frame], list[Box]]:
    if boxes is not None:
        given = read_boxes(boxes)
        return lambda frame: given.get(frame.number, [])
    found: Detector = detector(find, min_height)
    return lambda frame: found(frame.image)


def _write(path: Path, picture: Picture) -> None:
    with atomic_write(path) as stream:
        Image.fromarray(picture).save(stream, "PNG")


def _stem(source: Path) -> str:
    return re.sub(r"[^\w.-]", "_", source.stem) or "frames"


def _enter(table: Path, camera: str, rows: list[tuple[str, float, str]]) -> None:
    """Add crops to the table; those cut before from the same source are replaced."""
    if not rows:
        return
    new = {name for name, _, _ in rows}
    paths, times, sequences = (list(column) for column in zip(*rows, strict=True))
    persons, cameras = [""] * len(rows), [camera] * len(rows)
    if table.is_file():
        old = read_table(table)
        kept = old.select(np.array([str(path) not in new for path in old.paths], bool))
        paths, times = kept.paths.tolist() + paths, kept.times.tolist() + times
        persons, cameras = kept.persons.tolist() + persons, kept.cameras.tolist() + cameras
        sequences = kept.sequences.tolist() + sequences
    whole = Sightings(
        np.array(paths, str),
        np.array(persons, str),
        np.array(cameras, str),
        times=np.array(times, float),
        sequences=np.array(sequences, str),
        root=table.parent,
    )
    write_table(whole, table)
