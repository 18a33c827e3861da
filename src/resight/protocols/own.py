"""Half/half splits for people's own data."""

from __future__ import annotations

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.protocols.split import Protocol
from resight.protocols.views import by_cameras, halves, people_seen_twice, require_cameras

_FEWEST_PEOPLE = 4  # two to learn from (one of them must be wrong for the other), two to test


def half_half(
    sightings: Sightings,
    n_splits: int = 10,
    seed: int = 0,
    *,
    scoring: str = "single",
    both_directions: bool = False,
) -> Protocol:
    """Train on one half of the people, test on the other, several times.

    Parameters
    ----------
    sightings : Sightings
        Labelled people seen by at least two cameras. People seen by one camera only are never
        trained; they stay in the gallery as distractors.
    n_splits : int
        How many divisions.
    seed : int
        Another seed gives other divisions; see `resight.protocols.views.halves` for the rule.
    scoring : {"single", "sum", "min", "mean"}
        How people with several sightings are scored (two cameras only, unless "single").
    both_directions : bool
        With two cameras: whether the second also asks the first. With three or more every
        camera asks all others anyway.

    Returns
    -------
    Protocol
        With two cameras the first by name asks the second. With more, every test sighting asks
        and the gallery is everybody tested; the own camera is ignored.
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
    two = len(cameras) == 2
    asks = "queries: each camera in turn, gallery: the others"
    if two:
        and_back = ", and the reverse" if both_directions else ""
        asks = f"queries: {cameras[0]}, gallery: {cameras[1]}{and_back}"
    return Protocol(
        "half-half",
        tuple(
            by_cameras(sightings, *halves(people, number, seed), both_directions=both_directions)
            for number in range(n_splits)
        ),
        scoring=scoring,
        cross_camera_only=not two,
        description=f"{n_splits} random 50/50 splits of {len(people)} people (seed {seed}); {asks}",
    )
