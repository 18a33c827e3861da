"""Cut sightings that are boxes in larger pictures out into crops of their own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from resight._progress import progress
from resight.datasets.folders import TABLE
from resight.datasets.sightings import Sightings
from resight.datasets.table import write_table
from resight.errors import InputError


@dataclass(frozen=True)
class Cut:
    """Crops that were written, and rows that could not be: row number and reason."""

    sightings: Sightings
    failures: dict[int, str]


def cut_boxes(sightings: Sightings, folder: str | Path) -> Cut:
    """Write one PNG for each box, and a table of them, into `folder`.

    Parameters
    ----------
    sightings : Sightings
        With `boxes`; a box that reaches over the border of its picture is clipped to it.
    folder : path
        Must be new or empty. Crops are named ``<camera>/<row>.png``; the table ``sightings.csv``
        keeps persons, cameras, times, sequences, roles and sites.

    Returns
    -------
    Cut
        A picture that cannot be read, or a box outside of it, fails alone; the rest goes on.
    """
    root = Path(folder)
    if sightings.boxes is None:
        raise InputError(f"{sightings.name} has no columns x, y, w, h: its files are already crops")
    if root.exists() and any(root.iterdir()):
        raise InputError(f"the folder {str(root)!r} is not empty; give a new one")
    rows_of: dict[Path, list[int]] = defaultdict(list)
    for row, picture in enumerate(sightings.pictures()):
        rows_of[picture].append(row)
    failures: dict[int, str] = {}
    names = _names(sightings)
    with progress("cutting", len(rows_of)) as advance:
        for picture, rows in rows_of.items():
            boxes = {row: sightings.boxes[row].tolist() for row in rows}
            failures |= _cut_picture(picture, boxes, {row: root / names[row] for row in rows})
            advance(1)
    done = [row for row in range(len(sightings)) if row not in failures]
    if not done:
        raise InputError(f"no box could be cropped: {next(iter(failures.values()))}")
    kept = sightings.select(done)
    paths = np.array([names[row] for row in done])
    crops = replace(kept, paths=paths, boxes=None, root=root, name=root.resolve().name)
    write_table(crops, root / TABLE)
    return Cut(crops, dict(sorted(failures.items())))


def _names(sightings: Sightings) -> list[str]:
    digits = len(str(len(sightings)))
    safe = [camera.replace("/", "-").replace("\\", "-") for camera in sightings.cameras.tolist()]
    return [f"{camera}/{row + 1:0{digits}d}.png" for row, camera in enumerate(safe)]


def _cut_picture(
    picture: Path, boxes: dict[int, list[int]], targets: dict[int, Path]
) -> dict[int, str]:
    from PIL import Image

    from resight.images import cut, read

    try:
        pixels = read(picture)
    except InputError as error:
        return dict.fromkeys(boxes, str(error))
    failures = {}
    for row, box in boxes.items():
        try:
            crop = Image.fromarray(cut(pixels, box))
        except InputError as error:
            failures[row] = f"{picture}: {error}"
            continue
        targets[row].parent.mkdir(parents=True, exist_ok=True)
        crop.save(targets[row])
    return failures
