"""Cutting people out of frames into ``<camera>/*.png`` and a table with their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from resight._files import atomic_write
from resight.datasets.folders import TABLE
from resight.datasets.sightings import COLUMNS, Sightings
from resight.datasets.table import read_table, write_table
from resight.datasets.video.detectors import detector
from resight.datasets.video.frames import Box, Frame, frames, read_boxes
from resight.datasets.video.tracking import Tracker, overlap
from resight.errors import InputError
from resight.images.arrays import MIN_HEIGHT, MIN_WIDTH, inside
from resight.validation import MAX_SIDE, check_count, check_name, check_number, check_seconds

_RATE = 25.0  # frames a second where nobody tells: how long people may be out of sight


@dataclass(frozen=True)
class Cut:
    """What came out: crops of tracks in frames, and how many boxes were too small or outside."""

    crops: int
    tracks: int
    frames: int
    left_out: int
    table: Path


def cut(
    source: Path,
    out: Path,
    camera: str,
    *,
    boxes: Path | None = None,
    find: str | Path = "people",
    wanted: str = "person",
    confidence: float = 0.5,
    per_track: int | None = 5,
    every: int = 1,
    fps: float | None = None,
    start: float = 0.0,
    min_height: int = 64,
    overwrite: bool = False,
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
        MOT or CSV file of boxes; without it `find` finds them and they are tracked.
    find : "people" | "motion" | path of an ONNX file
        The detector (see `detectors`).
    wanted, confidence
        For a network: the class to find, and the score from which a box may begin a track.
    per_track : int or None
        How many crops of a track are kept, spread over it (see `Choice`); None keeps all.
    every : int
        Take one frame of so many (with `boxes`: of those that have one).
    start : float
        Time of the first frame, in seconds (since 1970, if times shall be dates).
    overwrite : bool
        Replace the crops of an earlier run on this source; otherwise they are refused.
    """
    if not check_name(camera, "camera", 80) or camera.startswith(".") or set(camera) & {*"/\\"}:
        raise InputError(f"camera {camera!r}: use a name without '/' that does not start with '.'")
    check_seconds(start, "start")
    check_count(min_height, "min_height", MIN_HEIGHT, MAX_SIDE)
    check_number(confidence, "confidence", 0, 1)
    if per_track is not None:
        check_count(per_track, "per_track")
    stem = re.sub(r"[^\w.-]", "_", source.stem) or "frames"
    crop_name = re.compile(re.escape(stem) + r"-\d{6,}-\d{2,}\.png")
    earlier = [file for file in (out / camera).glob("*.png") if crop_name.fullmatch(file.name)]
    if earlier and not overwrite:
        raise InputError(
            f"{out / camera} has {len(earlier)} crops of {stem} already; replace them with "
            "--overwrite (in Python overwrite=True), or give another folder or camera name"
        )
    _table_before(out / TABLE)  # what cannot be added to is refused before the work, not after it
    detect = detector(find, min_height, wanted)  # also with boxes: an unknown name is a mistake
    tracker, given = Tracker(confidence), None if boxes is None else read_boxes(boxes)
    ends = {box.track: n for n, found in sorted((given or {}).items()) for box in found}
    writer = _Writer(out, f"{camera}/{stem}", start, per_track)
    n_frames, stale = 0, set[str]()
    try:
        for frame in frames(source, every, fps):
            n_frames += 1
            if given is None:
                time = frame.number / _RATE if frame.time is None else frame.time
                writer.take(frame, tracker.follow(detect(frame.image), time), tracker.live)
            else:
                live = {track for track, end in ends.items() if end > frame.number}
                writer.take(frame, given.get(frame.number, []), live)
            if on_frame is not None:
                on_frame(1)
        writer.finish()
        stale = {f"{camera}/{file.name}" for file in earlier} - writer.written.keys()
    finally:  # also of an interrupted run, every crop on the disk is in the table
        if writer.written or stale:
            _enter(out / TABLE, camera, writer.written, stale)
    for name in stale:
        (out / name).unlink()
    return Cut(len(writer.written), len(writer.tracks), n_frames, writer.left_out, out / TABLE)


class Crop(NamedTuple):
    """A person cut out of a frame, with the name of the file it is to become."""

    name: str
    time: float
    track: str
    picture: NDArray[np.uint8]
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


def quality(picture: NDArray[np.uint8], box: Box, others: list[Box]) -> float:
    """Rate a crop: large, sharp, inside the frame and not overlapped by somebody else's box."""
    small = cv2.resize(picture, (48, 96), interpolation=cv2.INTER_AREA)  # sharpness at one size
    sharpness = float(cv2.Laplacian(cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), cv2.CV_64F).std())
    area = picture.shape[0] * picture.shape[1]
    overlaps = overlap(np.array([box[:4]], float), np.array([b[:4] for b in others], float))
    free = 1 - np.sort(overlaps[0])[-2] if len(others) > 1 else 1.0  # the largest is the box itself
    return float(np.sqrt(area) * area / (box.w * box.h) * sharpness * free)


class _Writer:
    """Writes the crops of a track when it ends, and those without a track at once."""

    def __init__(self, out: Path, prefix: str, start: float, per_track: int | None) -> None:
        self.out, self.prefix, self.start, self.per_track = out, prefix, start, per_track
        self.written: dict[str, tuple[float, str]] = {}  # time and track by file, below `out`
        self.left_out, self.tracks = 0, set[str]()
        self.choices: dict[str, Choice] = {}

    def take(self, frame: Frame, boxes: list[Box], live: Collection[str]) -> None:
        """Cut the boxes of a frame, after which the tracks `live` may go on."""
        time = np.nan if frame.time is None else self.start + frame.time
        for number, box in enumerate(boxes):
            picture = inside(frame.image, box[:4])
            if picture.shape[0] < MIN_HEIGHT or picture.shape[1] < MIN_WIDTH:
                self.left_out += 1
                continue
            name = f"{self.prefix}-{frame.number:06d}-{number:02d}.png"
            # A copy, because a part of the frame would keep the whole of it in memory.
            crop = Crop(name, time, box.track, picture.copy(), quality(picture, box, boxes))
            self.tracks |= {box.track} - {""}
            if not box.track or self.per_track is None:
                self._write(crop)
            else:
                self.choices.setdefault(box.track, Choice(self.per_track)).add(crop)
        self.finish(live)

    def finish(self, live: Collection[str] = ()) -> None:
        """Write the crops of tracks that have ended."""
        for track in [track for track in self.choices if track not in live]:
            for crop in self.choices.pop(track).chosen():
                self._write(crop)

    def _write(self, crop: Crop) -> None:
        with atomic_write(self.out / crop.name) as stream:
            Image.fromarray(crop.picture).save(stream, "PNG")
        track = f"{Path(self.prefix).name}-{crop.track}" if crop.track else ""
        self.written[crop.name] = crop.time, track


def _table_before(file: Path) -> Sightings | None:
    """Read the table that crops are added to."""
    if not file.is_file():
        return None
    before = read_table(file)
    if before.boxes is not None:
        raise InputError(f"{file} is a table of boxes, not of crops; give another folder")
    return before


def _enter(file: Path, camera: str, crops: dict[str, tuple[float, str]], stale: set[str]) -> None:
    """Write the table: what it had, without the lines that are replaced or stale, and the crops."""
    names = sorted(crops)
    table = Sightings(
        np.array(names, str),
        np.full(len(names), ""),
        np.full(len(names), camera),
        times=np.array([crops[name][0] for name in names], float),
        sequences=np.array([crops[name][1] for name in names], str),
        root=file.parent,
    )
    before = _table_before(file)
    if before is not None:
        kept = before.select(~np.isin(before.paths, [*names, *stale]))
        both: dict[str, Any] = {
            name: np.concatenate([getattr(kept, name), getattr(table, name)]) for name in COLUMNS
        }
        table = replace(table, **both)
    if len(table):
        write_table(table, file)
    else:
        file.unlink(missing_ok=True)
