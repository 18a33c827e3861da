"""Data of the pages, which are also available as JSON."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, field_validator

from resight.gallery import Hit, Hits
from resight.gallery.view import View


class Sighting(BaseModel):
    """One stored crop of a person."""

    id: str
    person: str
    camera: str
    time: float | None
    source: str

    @property
    def image(self) -> str:
        """Address of its image."""
        return f"/image/{self.id}"


class Found(Sighting):
    """A sighting that a search found; `distance` is squared, smaller = more similar."""

    rank: int
    distance: float
    probability: float | None
    verdict: Literal["same", "different"] | None


class Widening(BaseModel):
    """A wider filter, when a search found nothing."""

    words: str
    address: str


class PresenceAnswer(BaseModel):
    """Whether the person seems to be in the gallery; see `resight.gallery.confidence`."""

    likely: bool
    false_accepts: float
    compared: int
    words: str


class SearchAnswer(BaseModel):
    """The sightings most similar to a stored one (`like`) or an uploaded image (`upload`)."""

    like: str
    upload: str
    name: str
    query: Sighting | None
    hits: list[Found]
    presence: PresenceAnswer | None
    widen: list[Widening]
    model: str


class Explained(BaseModel):
    """Why a result looks alike or different; `explanation` has schema resight.explanation/1."""

    like: str
    upload: str
    query: Sighting | None
    hit: Sighting
    model: str
    explanation: dict[str, Any]


class BrowseAnswer(BaseModel):
    """A page of the gallery."""

    sightings: list[Sighting]
    total: int
    page: int
    pages: int
    cameras: list[str]
    propose: list[Sighting]


class PersonAnswer(BaseModel):
    """All sightings of a person, by camera and time."""

    person: str
    sightings: list[Sighting]
    cameras: list[str]


class Taught(BaseModel):
    """One answer."""

    key: str
    kind: Literal["same", "different", "name"]
    a: str
    b: str
    person: str
    who: str
    when: float


class TrayAnswer(BaseModel):
    """All answers that were not undone, newest first."""

    taught: list[Taught]


class TeachAnswer(BaseModel):
    """The result of an answer."""

    taught: Taught | None
    person: str
    total: int


class Access(BaseModel):
    """One entry of the access log."""

    when: float
    who: str
    what: str
    query: str = ""
    conditions: str = ""

    @field_validator("query", mode="before")
    @classmethod
    def _joined(cls, value: Any) -> Any:
        return " and ".join(value) if isinstance(value, list) else value

    @field_validator("conditions", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value


class AccessAnswer(BaseModel):
    """The latest entries of the access log, newest first."""

    entries: list[Access]


def sighting(view: View, row: int) -> Sighting:
    """Describe the sighting in a row of the table."""
    table, time = view.table, float(view.table.times[row])
    return Sighting(
        id=str(table.ids[row]),
        person=str(view.persons[row]),
        camera=str(table.cameras[row]),
        time=None if np.isnan(time) else time,
        source=str(table.sources[row]),
    )


def presence(hits: Hits) -> PresenceAnswer | None:
    """Describe whether the person seems to be there."""
    told = hits.presence
    if told is None:
        return None
    return PresenceAnswer(
        likely=told.likely,
        false_accepts=told.false_accepts,
        compared=told.compared,
        words=told.words,
    )


def found(hit: Hit) -> Found:
    """Describe a hit."""
    return Found(
        id=hit.id,
        person=hit.person,
        camera=hit.camera,
        time=hit.time,
        source=hit.source,
        rank=hit.rank,
        distance=hit.distance,
        probability=hit.probability,
        verdict=hit.verdict,
    )
