"""Sightings in a CSV file: ``path, person, camera[, time, sequence, role, site, x, y, w, h]``."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import atomic_write
from resight.datasets.sightings import ROLES, Sightings
from resight.errors import InputError, unknown_name
from resight.times import parse
from resight.validation import MAX_NAME, MAX_PATH, check_boxes, check_name, read_text

REQUIRED = ("path", "person", "camera")
BOX = ("x", "y", "w", "h")
LABELS = (*REQUIRED, "time", "sequence", "role", "site")
OPTIONAL = (*LABELS[len(REQUIRED) :], *BOX)


def read_table(file: str | Path, root: str | Path | None = None) -> Sightings:
    """Read a CSV table of sightings.

    Parameters
    ----------
    file : path
        UTF-8, first line the column names, separated by comma, semicolon or tab. `person` may be
        empty (unknown). `time` is in seconds, h:mm:ss or ISO 8601 (without a zone: UTC). `x, y, w,
        h` is the person's box in a larger picture: all four columns or none.
    root : path, optional
        Where relative paths start; the folder of `file` unless given.

    Raises
    ------
    InputError
        For missing or unknown columns, and for a bad value with its line number.
    """
    file = Path(file)
    rows = [(number, row) for number, row in _read_lines(file) if any(row.values())]
    if not rows:
        raise InputError(f"{file.name} has no rows; add one line per sighting")
    _refuse_repeated(file, rows)
    lines = [_checked(file, number, row) for number, row in rows]

    def column(name: str) -> NDArray[Any]:
        return np.array([line.get(name, "") for line in lines])

    return Sightings(
        **{f"{name}s": column(name) for name in LABELS},
        boxes=column("box") if "box" in lines[0] else None,
        root=file.parent if root is None else Path(root),
        name=file.resolve().parent.name if file.stem == "sightings" else file.stem,
    )


def write_table(sightings: Sightings, file: str | Path) -> None:
    """Write `sightings` so that `read_table` gives them back; empty columns are left out."""
    every: dict[str, list[str]] = {name: getattr(sightings, f"{name}s").tolist() for name in LABELS}
    every["time"] = ["" if math.isnan(time) else repr(time) for time in sightings.times.tolist()]
    columns = {name: values for name, values in every.items() if name in REQUIRED or any(values)}
    if sightings.boxes is not None:
        columns |= {side: sightings.boxes[:, i].astype(str).tolist() for i, side in enumerate(BOX)}
    with atomic_write(Path(file), "w") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _read_lines(file: Path) -> list[tuple[int, dict[str, str]]]:
    text = read_text(file)
    if not text.strip():
        raise InputError(f"{file.name} is empty; its first line must name the columns")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    found = []
    try:
        header = [name.strip().lower() for name in next(reader)]
        _check_header(file, header)
        for row in reader:
            if row and len(row) != len(header):
                raise InputError(
                    f"{file.name} line {reader.line_num}: {len(row)} values for {len(header)} "
                    "columns; put values that contain the separator in double quotes"
                )
            values = (value.strip() for value in row)
            found.append((reader.line_num, dict(zip(header, values, strict=False))))
    except csv.Error as error:
        raise InputError(f"{file.name} line {reader.line_num}: {error}") from error
    return found


def _check_header(file: Path, header: list[str]) -> None:
    for name in header:
        if name not in (*REQUIRED, *OPTIONAL):
            raise InputError(f"{file.name}: {unknown_name('column', name, REQUIRED + OPTIONAL)}")
        if header.count(name) > 1:
            raise InputError(f"{file.name}: the column {name!r} appears twice; keep one")
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise InputError(
            f"{file.name} has no column {missing[0]!r}; it needs {', '.join(REQUIRED)} "
            f"and may have {', '.join(OPTIONAL)} (an empty person means unknown)"
        )
    sides = [name for name in BOX if name in header]
    if 0 < len(sides) < len(BOX):
        raise InputError(f"{file.name} has only {', '.join(sides)}; a box needs x, y, w and h")


def _refuse_repeated(file: Path, rows: list[tuple[int, dict[str, str]]]) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for number, row in rows:
        key = (row["path"], *(row.get(side, "") for side in BOX))
        if key in seen:
            raise InputError(
                f"{file.name} line {number}: {row['path']!r} is already in line "
                f"{seen[key]}; keep one line per sighting"
            )
        seen[key] = number


def _checked(file: Path, number: int, row: dict[str, str]) -> dict[str, Any]:
    """Check one line, and turn its time into seconds and its sides into a box."""
    try:
        for column in ("path", "camera"):
            if not row[column]:
                raise InputError(f"{column} is empty; only person may be empty")
        for column in (*REQUIRED, "sequence", "site"):
            check_name(row.get(column, ""), column, MAX_PATH if column == "path" else MAX_NAME)
        if row.get("role", "") not in ROLES:
            raise unknown_name("role", row["role"], ROLES[1:])
        time = row.get("time", "")
        box = {"box": _box(row)} if "x" in row else {}
        return {**row, "time": parse(time) if time else math.nan, **box}
    except InputError as error:
        raise InputError(f"{file.name} line {number}: {error}") from None


def _box(row: dict[str, str]) -> list[int]:
    try:
        sides = [float(row[side]) for side in BOX]
    except ValueError:
        given = ", ".join(row[side] for side in BOX)
        raise InputError(f"box {given}; give four numbers") from None
    return check_boxes([sides])[0].tolist()
