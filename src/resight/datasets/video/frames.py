"""What cutting starts from: frames of a video or a folder, and boxes that somebody else found."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from resight import images, validation
from resight._progress import log
from resight.datasets._walk import IMAGE_SUFFIXES
from resight.errors import InputError

Picture = NDArray[np.uint8]
MAX_FPS = 100_000
COLUMNS = ("frame", "x", "y", "w", "h")
_WHOLE = 0.9  # share of the frames announced below which a video was cut off; counts are estimates


class Frame(NamedTuple):
    """One picture of a whole scene: RGB, its number from 1, its time in seconds from the start."""

    number: int
    time: float | None
    image: Picture


class Box(NamedTuple):
    """Where a person is in a frame: left, top, width, height in pixels.

    `track` tells which passage it belongs to, if known; `score` how sure a detector is, up to 1.
    """

    x: int
    y: int
    w: int
    h: int
    track: str = ""
    score: float = 1.0


def frames(source: Path, every: int = 1, fps: float | None = None) -> Iterator[Frame]:
    """Yield every n-th frame of a video, or of the images of a folder in the order of their names.

    Numbers count all frames. `fps`, frames a second, is needed for times of a folder; a video's own
    times are used without it.
    """
    validation.check_count(every, "every")
    if fps is not None and validation.check_number(fps, "fps", 0, MAX_FPS) == 0:
        raise InputError("fps=0: it must be above 0")
    if source.is_dir():
        return _of_folder(source, every, fps)
    return _of_video(validation.check_file(source), every, fps)


def _of_folder(folder: Path, every: int, fps: float | None) -> Iterator[Frame]:
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        raise InputError(f"no images in {folder}; give a folder of frames or a video file")
    for i in range(0, len(files), every):
        yield Frame(i + 1, None if fps is None else i / fps, images.read(files[i]))


def _of_video(file: Path, every: int, fps: float | None) -> Iterator[Frame]:
    """Read frames as a player shows them: OpenCV turns those that the file says are rotated."""
    video = cv2.VideoCapture(str(file))
    try:
        if not video.isOpened():
            raise InputError(
                f"OpenCV cannot read {file} as a video: it is truncated, or of a kind that has to "
                "be converted to MP4 or AVI first"
            )
        number = 0
        while video.grab():
            number += 1
            if (number - 1) % every == 0:
                done, picture = video.retrieve()
                if done:
                    time = _time(video, number, fps)
                    yield Frame(number, time, np.ascontiguousarray(picture[..., ::-1]))
        promised = video.get(cv2.CAP_PROP_FRAME_COUNT)
        if number == 0:
            raise InputError(f"OpenCV cannot read any frame of {file}; the file may be truncated")
        if number < _WHOLE * promised:
            log.warning("%s ends after %d of %d frames: is it truncated?", file, number, promised)
    finally:
        video.release()


def _time(video: cv2.VideoCapture, number: int, fps: float | None) -> float | None:
    """Return the time of the current frame, as the file says: the frame rate may vary."""
    milliseconds, rate = video.get(cv2.CAP_PROP_POS_MSEC), fps or video.get(cv2.CAP_PROP_FPS)
    if fps is None and (milliseconds > 0 or number == 1):
        return milliseconds / 1000
    return (number - 1) / rate if rate > 0 else None


def read_boxes(file: Path) -> dict[int, list[Box]]:
    """Read boxes by frame number (from 1).

    The file is a MOT file (no header: frame, id, left, top, width, height[, confidence, ...]; lines
    with confidence 0 are ignored, as the benchmark does), or a CSV with the columns frame, x, y, w,
    h and, if known, id.
    """
    try:
        lines = validation.read_text(file).splitlines()
        rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    except (InputError, csv.Error) as error:
        raise InputError(f"cannot read boxes from {file}: {error}") from error
    if not rows:
        raise InputError(f"{file} is empty; it needs one line per box")
    header = [name.strip().lower() for name in rows[0][1]]
    if any(name in header for name in COLUMNS):
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise InputError(f"{file} has no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
        del rows[0]
    else:
        header = ["frame", "id", "x", "y", "w", "h", "confidence"]
    found: dict[int, list[Box]] = {}
    for number, row in rows:
        values = dict(zip(header, row, strict=False))
        try:
            frame, *sides = (float(values[name]) for name in COLUMNS)
            ignored = float(values.get("confidence") or 1) == 0
            validation.check_number(frame, "frame", 1)
            track = validation.check_name(values.get("id", "").strip(), "id")
            x, y, w, h = validation.check_boxes([sides])[0].tolist()
        except InputError as error:
            raise InputError(f"{file} line {number}: {error}") from None
        except (ValueError, KeyError) as error:
            raise InputError(f"{file} line {number}: expected numbers for {COLUMNS}") from error
        if not ignored:
            found.setdefault(int(frame), []).append(Box(x, y, w, h, "" if track == "-1" else track))
    return found
