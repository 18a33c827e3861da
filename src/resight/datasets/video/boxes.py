"""Boxes that somebody else found: a MOT file or a CSV table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from resight.errors import InputError
from resight.validation import check_boxes, check_name, check_number, read_text

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

    The file is a MOT file (no header: frame, id, left, top, width, height[, confidence, ...]; lines
    with confidence 0 are ignored, as the benchmark does), or a CSV with the columns frame, x, y, w,
    h and, if known, id.
    """
    try:
        lines = read_text(file).splitlines()
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
        except (ValueError, KeyError) as error:
            raise InputError(f"{file} line {number}: expected numbers for {COLUMNS}") from error
        try:
            check_number(frame, "frame", 1)
            track = check_name(values.get("id", "").strip(), "id")
            x, y, w, h = check_boxes([sides])[0].tolist()
        except InputError as error:
            raise InputError(f"{file} line {number}: {error}") from None
        if not ignored:
            box = Box(x, y, w, h, "" if track == "-1" else track)
            found.setdefault(int(frame), []).append(box)
    return found
