"""A table of sightings: the one form in which all data enters resight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.validation import MAX_NAME, MAX_PATH, check_boxes, check_names, check_times

COLUMNS = ("paths", "persons", "cameras", "times", "sequences", "roles", "sites")
ROLES = ("", "train", "query", "gallery", "distractor", "junk")
UNKNOWN_PERSON = ""


@dataclass(frozen=True)
class Sightings:
    """Image crops with who and where: one row each, never changed after construction.

    Attributes
    ----------
    paths : array of str
        Image files, absolute or relative to `root`.
    persons : array of str
        Identity labels; the empty string means unknown.
    cameras : array of str
        Which camera saw the person.
    times : array of float64, seconds since the epoch or since the start; NaN = unknown.
    sequences, roles, sites : arrays of str; empty = not given.
    boxes : int array (n, 4) with x, y, w, h, or None when files are crops already.
    """

    paths: NDArray[np.str_]
    persons: NDArray[np.str_]
    cameras: NDArray[np.str_]
    times: NDArray[np.float64] = field(default=None)  # type: ignore[arg-type]
    sequences: NDArray[np.str_] = field(default=None)  # type: ignore[arg-type]
    roles: NDArray[np.str_] = field(default=None)  # type: ignore[arg-type]
    sites: NDArray[np.str_] = field(default=None)  # type: ignore[arg-type]
    boxes: NDArray[np.int64] | None = None
    root: Path = Path(".")
    name: str = "sightings"

    def __post_init__(self) -> None:
        n = len(self.paths)
        for column in (name for name in COLUMNS if name != "times"):
            values, longest = getattr(self, column), MAX_PATH if column == "paths" else MAX_NAME
            given = np.full(n, "") if values is None else check_names(values, column, longest)
            self._freeze(column, given)
        times = np.full(n, np.nan) if self.times is None else check_times(self.times)
        self._freeze("times", times)
        if self.boxes is not None:
            self._freeze("boxes", check_boxes(self.boxes))
        for column in (*COLUMNS, "boxes"):
            values = getattr(self, column)
            if values is not None and len(values) != n:
                raise InputError(
                    f"{n} paths but {len(values)} {column}; every column needs one "
                    "value per sighting"
                )
        if (self.cameras == "").any() or (self.paths == "").any():
            raise InputError("a sighting needs a path and a camera; only persons may be empty")
        unknown = sorted(set(self.roles.tolist()) - set(ROLES))
        if unknown:
            raise InputError(
                f"unknown role {unknown[0]!r}; allowed: {', '.join(filter(None, ROLES))} or empty"
            )

    def _freeze(self, column: str, values: NDArray[Any]) -> None:
        values = values.copy()
        values.flags.writeable = False
        object.__setattr__(self, column, values)

    def __len__(self) -> int:
        return len(self.paths)

    def files(self) -> list[Path]:
        """Paths of the files that the sightings are in, in row order: crops or larger pictures."""
        return [self.root / path for path in self.paths.tolist()]

    def heights(self) -> NDArray[np.intp]:
        """Heights of the crops in pixels, by the headers of their files; 0 where these fail."""
        from resight.images.reading import height_of

        if self.boxes is not None:
            return self.boxes[:, 3].astype(np.intp)
        return np.array([height_of(path) for path in self.files()], np.intp)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> Sightings:
        """Return some rows (indices or a mask), in the order asked for."""
        chosen = np.asarray(rows) if len(rows) else np.empty(0, np.intp)
        parts: dict[str, Any] = {column: getattr(self, column)[chosen] for column in COLUMNS}
        parts["boxes"] = None if self.boxes is None else self.boxes[chosen]
        return replace(self, **parts)


def require_sightings(given: Any) -> Sightings:
    """Refuse what is not a table of sightings, such as the path of one."""
    if isinstance(given, Sightings):
        return given
    raise InputError(
        "give sightings, as resight.sightings(path) reads them, not a " + type(given).__name__
    )


def seen_by_two(persons: NDArray[Any], cameras: NDArray[Any]) -> NDArray[Any]:
    """Return the people that at least two cameras have seen, sorted: others make no pair."""
    people, who = np.unique(persons, return_inverse=True)
    where = np.unique(cameras, return_inverse=True)[1]
    cells = np.unique(np.stack([who, where], axis=1), axis=0)
    return people[np.bincount(cells[:, 0], minlength=len(people)) > 1]
