"""Look at a table of sightings: counts from the rows, troubles and fingerprint of the files."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from resight._files import digest_of, digest_of_file
from resight._progress import progress
from resight.datasets._walk import natural
from resight.datasets.sightings import Sightings
from resight.errors import InputError


def overview(sightings: Sightings) -> dict[str, Any]:
    """Count people (known ones, without distractors and junk), cameras and images.

    Per person and camera are the images of a known person in a camera that saw them.
    """
    persons, cameras, roles = (
        column.tolist() for column in (sightings.persons, sightings.cameras, sightings.roles)
    )
    pairs = Counter(
        (person, camera)
        for person, camera, role in zip(persons, cameras, roles, strict=True)
        if person and role not in ("distractor", "junk")
    )
    seen_by, people_of = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    counts = list(pairs.values()) or [0]
    spread = {"min": min(counts), "median": median(counts), "max": max(counts)}
    return {
        "images": len(sightings),
        "people": len(seen_by),
        "unknown": persons.count(""),
        "distractors": roles.count("distractor"),
        "junk": roles.count("junk"),
        "cameras": {
            camera: {"images": count, "people": people_of[camera]}
            for camera, count in sorted(Counter(cameras).items(), key=lambda item: natural(item[0]))
        },
        "one_camera_only": sorted((p for p, n in seen_by.items() if n == 1), key=natural),
        "images_per_person_and_camera": spread,
    }


def check_files(sightings: Sightings) -> dict[str, list[Any]]:
    """Decode every file once; list those that fail, and groups of paths with the same contents.

    Conflicts are duplicates that are labelled as different people.
    """
    unreadable = []
    copies: dict[str, list[int]] = defaultdict(list)
    files = sightings.files()
    first = np.unique(sightings.paths, return_index=True)[1]  # frames with boxes: each file once
    with progress("reading", len(first)) as advance:
        for row in np.sort(first).tolist():
            reason = _trouble(files[row])
            if reason:
                unreadable.append({"path": str(sightings.paths[row]), "reason": reason})
            else:
                copies[digest_of_file(files[row])].append(row)
            advance(1)
    groups = [rows for rows in copies.values() if len(rows) > 1]
    conflicts = [rows for rows in groups if len(set(sightings.persons[rows].tolist())) > 1]
    return {
        "unreadable": unreadable,
        "duplicates": [sightings.paths[rows].tolist() for rows in groups],
        "conflicts": [sightings.paths[rows].tolist() for rows in conflicts],
    }


def fingerprint(sightings: Sightings) -> str:
    """Fingerprint of file contents, file names and labels.

    Contents, not sizes: a picture that was edited or re-encoded in place must be noticed, and
    reading a thousand crops takes a fraction of a second. Row order, the folder and the layout in
    which the files lie do not matter. A missing file counts as such and does not stop the rest.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    boxes = [""] * len(sightings) if sightings.boxes is None else sightings.boxes.tolist()
    names = ("cameras", "persons", "roles", "sequences", "sites")
    columns = [getattr(sightings, name).tolist() for name in names]
    labels = zip(*columns, map(repr, sightings.times.tolist()), map(str, boxes), strict=True)
    files = sightings.files()
    contents = {file: _contents(file) for file in set(files)}
    pairs = zip(labels, files, strict=True)
    rows = (digest_of(*label, file.name, contents[file]) for label, file in pairs)
    return digest_of(*sorted(rows))


def _contents(file: Path) -> str:
    try:
        return digest_of_file(file)
    except OSError:
        return "missing"


def _trouble(file: Path) -> str | None:
    """Why a file cannot be used, or None; by the reader that descriptors use."""
    from resight.images import read

    try:
        read(file)
    except InputError as error:
        return str(error).removeprefix(f"{file} ").replace(str(file), "it")
    except OSError as error:
        return error.strerror or str(error)
    return None
