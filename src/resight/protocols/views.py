"""From lists of people to rows: the cameras decide what is query and what is gallery.

`half_half` makes such splits of people's own data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from resight.datasets.sightings import UNKNOWN_PERSON, Sightings, seen_by_two
from resight.errors import InputError
from resight.protocols.split import Protocol, Split, refuse_overlap, shown

People = Collection[str]
_FEWEST_PEOPLE = 4  # two to learn from (one of them must be wrong for the other), two to test


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


def people_seen_twice(sightings: Sightings) -> list[str]:
    """Labelled people seen by at least two cameras, sorted; others cannot be trained or asked."""
    known = labelled(sightings)
    return list(map(str, seen_by_two(sightings.persons[known], sightings.cameras[known])))


def scored_persons(sightings: Sightings, rows: NDArray[np.intp]) -> NDArray[np.str_]:
    """Persons of some rows as scoring needs them: a distractor is a stranger of its own.

    Datasets give all distractors one number; as unknown people they are neither grouped nor found.
    """
    return np.where(sightings.roles[rows] == "distractor", UNKNOWN_PERSON, sightings.persons[rows])


def by_cameras(
    sightings: Sightings,
    train: People,
    test: People,
    cameras: Sequence[str] | None = None,
    *,
    both_directions: bool = False,
) -> Split:
    """Split by cameras: with two, queries come from the first and the gallery from the second.

    With more, every test sighting is a query; scoring ignores matches from its own camera.
    `cameras` are by default those that saw labelled people. With `both_directions` the second of
    two also asks the first one. Besides the test people a gallery holds distractors and people whom
    no other camera has seen; nobody asks for them and they are never trained.
    """
    first, second, *others = require_cameras(sightings) if cameras is None else cameras
    trained, tested = _require_people(sightings, train, test)
    alone = labelled(sightings) & ~np.isin(sightings.persons, people_seen_twice(sightings))
    searched = tested | ((alone | (sightings.roles == "distractor")) & ~trained)
    rows = np.flatnonzero
    if others:
        askable = tested & np.isin(sightings.persons, people_seen_twice(sightings))
        return Split(rows(trained), rows(askable), rows(searched))
    here, there = sightings.cameras == first, sightings.cameras == second
    return Split(
        rows(trained & (here | there)),
        rows(tested & here),
        rows(searched & there),
        reverse=(rows(tested & there), rows(searched & here)) if both_directions else None,
    )


def require_cameras(sightings: Sightings) -> list[str]:
    """Return the cameras with labelled sightings, by name; fewer than two are refused."""
    cameras: list[str] = np.unique(sightings.cameras[labelled(sightings)]).tolist()
    if len(cameras) < 2:
        seen = f"one camera only, {cameras[0]!r}" if cameras else "no labelled sightings"
        raise InputError(
            f"{sightings.name} has {seen}; re-identification needs labelled people in "
            "at least two cameras: put each camera's images in its own folder, or "
            "give a CSV with the columns path, person, camera"
        )
    return cameras


def half_half(sightings: Sightings, n_splits: int = 10, seed: int = 0) -> Protocol:
    """Train on one half of the people, test on the other, several times.

    With two cameras the first by name asks the second. With more, every test sighting asks and
    the gallery is everybody tested; the own camera is ignored.

    Parameters
    ----------
    sightings : Sightings
        Labelled people seen by at least two cameras. People seen by one camera only are never
        trained; they stay in the gallery as distractors.
    n_splits, seed : int
        How many divisions; another seed gives others, see `halves` for the rule.
    """
    if n_splits < 1:
        raise InputError(f"n_splits is {n_splits}; at least one split is needed")
    cameras = require_cameras(sightings)
    people = people_seen_twice(sightings)
    if len(people) < _FEWEST_PEOPLE:
        raise InputError(
            f"{len(people)} people of {sightings.name} appear in two or more cameras; "
            f"a 50/50 split needs at least {_FEWEST_PEOPLE}: label more people, or use "
            "the same name for a person in every camera"
        )
    two, asks = len(cameras) == 2, "queries: each camera in turn, gallery: the others"
    if two:
        asks = f"queries: {cameras[0]}, gallery: {cameras[1]}"
    divided = (halves(people, number, seed) for number in range(n_splits))
    return Protocol(
        "half-half",
        tuple(by_cameras(sightings, *one) for one in divided),
        cross_camera_only=not two,
        description=f"{n_splits} random 50/50 splits of {len(people)} people (seed {seed}); {asks}",
    )


def _require_people(sightings: Sightings, train: People, test: People) -> list[NDArray[np.bool_]]:
    """Return the labelled sightings of people who train and who are tested, all of them there."""
    refuse_overlap(set(train), set(test))
    known = labelled(sightings)
    absent = (set(train) | set(test)) - set(sightings.persons[known].tolist())
    if absent:
        raise InputError(
            f"{len(absent)} people are not among the labelled sightings of {sightings.name}: "
            f"{shown(absent)}; check that the data is complete, and use the names that "
            "'resight data info' shows"
        )
    return [known & np.isin(sightings.persons, list(people)) for people in (train, test)]
