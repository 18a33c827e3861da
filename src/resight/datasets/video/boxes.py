"""Boxes that somebody else found: a MOT file or a CSV table."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import NamedTuple

from resight.errors import InputError

COLUMNS = ("frame", "x", "y", "w", "h")


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


def read_boxes(file: Path) -> dict[int, list[Box]]:
    """Read boxes by frame number (from 1).

    Parameters
    ----------
    file : Path
        Either a MOT file (no header: frame, id, left, top, width, height[, confidence, ...]; lines
        with confidence 0 are ignored, as the benchmark does), or a CSV with the columns
        frame, x, y, w, h and, if known, id.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read boxes from {file}: it is not a text file") from error
    rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    if not rows:
        raise InputError(f"{file} is empty; it needs one line per box")
    header = [name.strip().lower() for name in rows[0][1]]
    if any(name in header for name in COLUMNS):
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise InputError(f"{file} has no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
        places = [header.index(name) for name in COLUMNS]
        track = header.index("id") if "id" in header else None
        return _collect(file, rows[1:], places, track, None)
    return _collect(file, rows, [0, 2, 3, 4, 5], 1, 6)


def _collect(
    file: Path,
    rows: list[tuple[int, list[str]]],
    places: list[int],
    track: int | None,
    confidence: int | None,
) -> dict[int, list[Box]]:
    found: dict[int, list[Box]] = {}
    for number, row in rows:
        try:
            frame, x, y, w, h = (float(row[place]) for place in places)
            sure = float(row[confidence]) if confidence is not None and len(row) > confidence else 1
        except (ValueError, IndexError) as error:
            raise InputError(f"{file} line {number}: expected numbers for {COLUMNS}") from error
        if not all(map(math.isfinite, (frame, x, y, w, h))) or w <= 0 or h <= 0 or frame < 1:
            raise InputError(f"{file} line {number}: a box needs frame >= 1, w > 0 and h > 0")
        if sure != 0:
            name = row[track].strip() if track is not None else ""
            box = Box(round(x), round(y), round(w), round(h), "" if name == "-1" else name)
            found.setdefault(int(frame), []).append(box)
    return found
