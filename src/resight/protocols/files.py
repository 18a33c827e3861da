"""A user's own splits from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import eq
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError, unknown_name
from resight.protocols.split import Protocol, Split
from resight.protocols.views import by_cameras, labelled, require_cameras
from resight.validation import parse_json, read_text

_BY_PEOPLE = ("train", "test")
_BY_PATHS = ("train", "query", "gallery")
_SETTINGS = {
    "name": str,
    "scoring": str,
    "both_directions": bool,
    "cross_camera_only": bool,
    "splits": list,
}


def from_file(path: str | Path, sightings: Sightings) -> Protocol:
    """Read splits that a user made.

    Parameters
    ----------
    path : str or Path
        A JSON file: a list of splits, or an object ``{"splits": [...]}`` with the optional
        settings ``name``, ``scoring`` (single, sum, min, mean), ``both_directions`` and
        ``cross_camera_only``. A split is ``{"train": [people], "test": [people]}`` (the cameras
        decide what is query and gallery) or ``{"train": [paths], "query": [paths], "gallery":
        [paths]}``.
    sightings : Sightings
        The data that the people or paths belong to.

    Raises
    ------
    InputError
        When the file cannot be read or names keys, people or images that do not exist, and for
        everything `Protocol.check` refuses.
    """
    settings = _settings(Path(path))
    entries, both = settings["splits"], settings.get("both_directions", False)
    three = len(require_cameras(sightings)) > 2
    splits = (_split(f"{path}, split {i}", e, sightings, both) for i, e in enumerate(entries))
    every_camera_asks = three and any("test" in entry for entry in entries)
    return Protocol(
        settings.get("name", Path(path).stem),
        tuple(splits),
        scoring=settings.get("scoring", "single"),
        cross_camera_only=settings.get("cross_camera_only", every_camera_asks),
        description=f"splits read from {Path(path).name}",
    ).check(sightings)


def _settings(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        document = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); see docs/protocols.md") from error
    if isinstance(document, list):
        document = {"splits": document}
    if not isinstance(document, dict) or "splits" not in document:
        raise InputError(f"{path} must be a list of splits or an object with the key 'splits'")
    for key, value in document.items():
        if key not in _SETTINGS:
            raise unknown_name(f"key in {path}", key, _SETTINGS)
        kind = _SETTINGS[key]
        if not isinstance(value, kind):
            words = {str: "a string", bool: "true or false", list: "a list"}[kind]
            raise InputError(f"{path}: {key!r} must be {words}, not {json.dumps(value)}")
    if not document["splits"]:
        raise InputError(f"{path}: 'splits' must contain at least one split")
    return document


def _split(where: str, entry: Any, sightings: Sightings, both_directions: bool) -> Split:
    keys = set(entry) if isinstance(entry, dict) else set()
    if keys not in (set(_BY_PEOPLE), set(_BY_PATHS)):
        raise InputError(
            f"{where} has the keys {sorted(keys)}; allowed: {list(_BY_PEOPLE)} with people or "
            f"{list(_BY_PATHS)} with image paths"
        )
    for key, values in entry.items():
        if not isinstance(values, list) or not all(isinstance(v, str | int) for v in values):
            raise InputError(f"{where}: {key!r} must be a list of strings or numbers")
    if keys == set(_BY_PATHS) and both_directions:
        raise InputError(
            f"{where} lists image paths, so 'both_directions' does not apply; add "
            "another split for the other direction"
        )
    try:
        if keys == set(_BY_PATHS):
            row_of = _row_finder(sightings)
            rows: Any = (np.array([row_of(str(path)) for path in entry[key]]) for key in _BY_PATHS)
            return Split(*rows)
        trained, tested = (_people(sightings, entry[key]) for key in _BY_PEOPLE)
        return by_cameras(sightings, trained, tested, both_directions=both_directions)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _people(sightings: Sightings, given: list[Any]) -> list[str]:
    """Match people as written, else as numbers without leading zeros (0012 is 12)."""
    known = set(sightings.persons[labelled(sightings)].tolist())
    plain = {name: str(int(name)) if name.isdecimal() else name for name in map(str, given)}
    return [name if name in known or plain[name] not in known else plain[name] for name in plain]


def _row_finder(sightings: Sightings) -> Callable[[str], int]:
    """Find rows by path, or by as much of the end of a path as is unique."""
    exact = {path: row for row, path in enumerate(sightings.paths.tolist())}
    by_name: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for path, row in exact.items():
        by_name.setdefault(PurePosixPath(path).name, []).append((row, PurePosixPath(path).parts))

    def row_of(path: str) -> int:
        if path in exact:
            return exact[path]
        wanted, known = PurePosixPath(path), by_name.get(PurePosixPath(path).name, [])
        rows = [row for row, parts in known if all(map(eq, parts[::-1], wanted.parts[::-1]))]
        if len(rows) != 1:
            problem = "is not among the sightings" if not rows else f"matches {len(rows)} sightings"
            raise InputError(
                f"image {path!r} {problem} of {sightings.name}; give paths relative to "
                f"the data folder, such as {str(sightings.paths[0])!r}"
            )
        return rows[0]

    return row_of
