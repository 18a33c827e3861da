"""Who trains, who is query, who is gallery, how often, and how people are scored."""

from __future__ import annotations

import re
from collections.abc import Callable

from resight.datasets.sightings import Sightings
from resight.errors import InputError, unknown_name
from resight.protocols.files import from_file
from resight.protocols.published import PUBLISHED, roles
from resight.protocols.scoring import person_scores
from resight.protocols.split import Protocol, Split
from resight.protocols.views import half_half, scored_persons

__all__ = [
    "Protocol",
    "Split",
    "for_dataset",
    "from_file",
    "half_half",
    "person_scores",
    "possible",
    "scored_persons",
]

_GENERAL = {"roles": roles, "half-half": half_half}


def for_dataset(sightings: Sightings, name: str | None = None) -> Protocol:
    """Return a checked protocol: the named one, or the usual one for these sightings.

    Parameters
    ----------
    sightings : Sightings
        A published dataset is recognised by its ``name``.
    name : str, optional
        One of the names that `possible` lists. Without it: the published protocol of the
        dataset, else the roles given with the data, else half/half.
    """
    known = {**_GENERAL, **_published(sightings)}
    if name is None:
        has_queries = bool((sightings.roles == "query").any())
        name = next(iter(_published(sightings)), "roles" if has_queries else "half-half")
    if name not in known:
        raise unknown_name(f"protocol for {sightings.name}", name, known)
    return known[name](sightings).check(sightings)


def possible(sightings: Sightings) -> list[tuple[str, str | None]]:
    """List protocols with None, or with the reason why these sightings do not allow them."""
    outcomes: list[tuple[str, str | None]] = []
    for name in {**_published(sightings), **_GENERAL}:
        try:
            for_dataset(sightings, name)
            outcomes.append((name, None))
        except InputError as error:
            outcomes.append((name, str(error)))
    return outcomes


def _published(sightings: Sightings) -> dict[str, Callable[[Sightings], Protocol]]:
    return PUBLISHED.get(re.sub(r"[^a-z0-9]", "", sightings.name.lower()), {})
