"""The recipe: descriptors, mirror images and learner where the user names none.

`evaluate`, `fit`, the demo, retraining on the page and the Python functions all read it here, so
that what is measured is what is fitted.
"""

from __future__ import annotations

from resight.registry import AUTO
from resight.tuning.candidates import AUTO_ROWS

DESCRIPTOR = "gog+lomo-dagger+whos-dagger"
MIRROR = False  # the learner `auto` compares with features averaged over mirror images by itself
LEARNER = AUTO
LARGE_LEARNER = "kxqda:cv"  # chooses on some of the people, and goes through landmarks if need be
LARGE = AUTO_ROWS
"""Labelled sightings up to which `auto` learns from all of them."""

_SECONDS = (30.0, 600.0)  # of a choice, at least and at most


def learner_for(n_sightings: int) -> str:
    """Return the learner for a number of labelled sightings."""
    return LEARNER if n_sightings <= LARGE else LARGE_LEARNER


def budget_for(n_people: int) -> float:
    """Return the seconds that choosing may take: one for each person, within bounds.

    >>> budget_for(12), budget_for(110), budget_for(5000)
    (30.0, 110.0, 600.0)
    """
    least, most = _SECONDS
    return min(max(least, float(n_people)), most)
