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
        try:
            check_number(frame, "frame", 1)
            name = check_name(row[track].strip(), "id") if track is not None else ""
            x, y, w, h = check_boxes([[x, y, w, h]])[0].tolist()
        except InputError as error:
            raise InputError(f"{file} line {number}: {error}") from None
        if sure != 0:
            box = Box(int(x), int(y), int(w), int(h), "" if name == "-1" else name)
            found.setdefault(int(frame), []).append(box)
    return found
