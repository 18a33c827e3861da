"""From lists of people to rows: the cameras decide what is query and what is gallery."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, seen_by_two
from resight.errors import InputError
from resight.protocols.split import Split, refuse_overlap, shown


def halves(persons: Sequence[str], split: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Divide people into (train, test) by a fixed rule that needs no random generator.

    People are ordered by the SHA-256 of the text ``resight/<seed>/<split>/<person>``; the first
    half trains (the larger half when their number is odd). Anybody can repeat this in any
    language, and it does not depend on the order of the files.

    Examples
    --------
    >>> halves(["1", "2", "3", "4", "5"], split=0)
    (['1', '3', '2'], ['4', '5'])
    """
    ordered = sorted(
        set(persons), key=lambda p: sha256(f"resight/{seed}/{split}/{p}".encode()).hexdigest()
    )
    middle = (len(ordered) + 1) // 2
    return ordered[:middle], ordered[middle:]


def labelled(sightings: Sightings) -> NDArray[np.bool_]:
    """Sightings that may be trained or asked for: known people, no distractors, no junk."""
    return (sightings.persons != UNKNOWN_PERSON) & ~np.isin(sightings.roles, ("distractor", "junk"))


def camera_names(sightings: Sightings) -> list[str]:
    """Cameras with labelled sightings, in the order of their names."""
    return [str(camera) for camera in np.unique(sightings.cameras[labelled(sightings)])]


def people_seen_twice(sightings: Sightings) -> list[str]:
    """Labelled people seen by at least two cameras, sorted; others cannot be trained or asked."""
    known = labelled(sightings)
    return list(map(str, seen_by_two(sightings.persons[known], sightings.cameras[known])))


def scored_persons(sightings: Sightings, rows: NDArray[np.intp]) -> NDArray[np.str_]:
    """Persons of some rows as scoring needs them: a distractor is a stranger of its own.

    Datasets give all distractors one number; as unknown people they are neither grouped nor found.
    """
    stranger = sightings.roles[rows] == "distractor"
    return np.where(stranger, UNKNOWN_PERSON, sightings.persons[rows])


def two_view(
    sightings: Sightings,
    train: Collection[str],
    test: Collection[str],
    cameras: tuple[str, str],
    *,
    both_directions: bool = False,
) -> Split:
    """Split for two cameras: the first asks, the second is searched.

    Parameters
    ----------
    train, test : people
    cameras : (query camera, gallery camera)
    both_directions : bool
        Whether the second camera also asks the first one.

    Notes
    -----
    Besides the test people a gallery holds its camera's distractors and people whom no other
    camera has seen; nobody asks for them and they are never trained.
    """
    _require_people(sightings, train, test)
    known = labelled(sightings)
    trained, tested = (known & np.isin(sightings.persons, list(people)) for people in (train, test))
    query_camera, gallery_camera = ((sightings.cameras == camera) for camera in cameras)
    extra = _nobody_asks(sightings) & ~trained
    forward = _rows(tested & query_camera), _rows((tested | extra) & gallery_camera)
    backward = _rows(tested & gallery_camera), _rows((tested | extra) & query_camera)
    return Split(
        _rows(trained & (query_camera | gallery_camera)),
        *forward,
        reverse=backward if both_directions else None,
    )


def many_view(sightings: Sightings, train: Collection[str], test: Collection[str]) -> Split:
    """Split for three or more cameras: every test sighting asks all cameras but its own."""
    _require_people(sightings, train, test)
    known = labelled(sightings)
    trained, tested = (known & np.isin(sightings.persons, list(people)) for people in (train, test))
    askable = tested & np.isin(sightings.persons, people_seen_twice(sightings))
    return Split(
        _rows(trained), _rows(askable), _rows(tested | (_nobody_asks(sightings) & ~trained))
    )


def by_cameras(
    sightings: Sightings,
    train: Collection[str],
    test: Collection[str],
    *,
    both_directions: bool = False,
) -> Split:
    """Split by `two_view` or `many_view`, whichever the number of cameras asks for."""
    cameras = require_cameras(sightings)
    if len(cameras) == 2:
        pair = (cameras[0], cameras[1])
        return two_view(sightings, train, test, pair, both_directions=both_directions)
    return many_view(sightings, train, test)


def require_cameras(sightings: Sightings) -> list[str]:
    """Return the cameras with labelled sightings; fewer than two are refused."""
    cameras = camera_names(sightings)
    if len(cameras) < 2:
        seen = f"one camera only, {cameras[0]!r}" if cameras else "no labelled sightings"
        raise InputError(
            f"{sightings.name} has {seen}; re-identification needs labelled people in "
            "at least two cameras: put each camera's images in its own folder, or "
            "give a CSV with the columns path, person, camera"
        )
    return cameras


def _nobody_asks(sightings: Sightings) -> NDArray[np.bool_]:
    alone = labelled(sightings) & ~np.isin(sightings.persons, people_seen_twice(sightings))
    return (sightings.roles == "distractor") | alone


def _require_people(sightings: Sightings, train: Collection[str], test: Collection[str]) -> None:
    refuse_overlap(set(train), set(test))
    absent = (set(train) | set(test)) - set(sightings.persons[labelled(sightings)].tolist())
    if absent:
        raise InputError(
            f"{len(absent)} people of the split are not among the sightings of "
            f"{sightings.name}: {shown(absent)}; check that the data is complete and "
            "that people have the same names as in the data"
        )


def _rows(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.flatnonzero(mask)
