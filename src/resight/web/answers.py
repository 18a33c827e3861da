"""Data of the pages, which are also available as JSON."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from resight.gallery.labels import Verdict
from resight.gallery.view import View


class Answer(BaseModel):
    """Data of a page; what is of the same shape, such as a `Hit`, is taken as it is."""

    model_config = ConfigDict(from_attributes=True)


class Sighting(Answer):
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
    """A sighting that a search found; at `distance` 1 same and different are equally likely."""

    rank: int
    distance: float
    raw_distance: float
    probability: float | None
    verdict: Verdict | None
    track: str
    unit: str
    same_picture: bool
    trained: bool


class Widening(Answer):
    """A wider filter, when a search found nothing."""

    words: str
    address: str


class PresenceAnswer(Answer):
    """Whether the person is in the gallery; see `resight.gallery.confidence`."""

    answer: Literal["found", "unsure", "absent"]
    false_accepts: float
    false_rejects: float
    compared: int
    why: str
    measured: dict[str, float]
    words: str


class SearchAnswer(Answer):
    """The sightings most similar to a stored one (`like`) or an uploaded image (`upload`)."""

    like: str
    upload: str
    name: str
    query: Sighting | None
    hits: list[Found]
    presence: PresenceAnswer | None
    note: str
    same_pictures: list[Found]
    widen: list[Widening]
    model: str


class Explained(Answer):
    """Why a result looks alike or different; `explanation` has schema resight.explanation/1."""

    like: str
    upload: str
    query: Sighting | None
    hit: Sighting
    model: str
    explanation: dict[str, Any]


class BrowseAnswer(Answer):
    """A page of the gallery."""

    sightings: list[Sighting]
    total: int
    page: int
    pages: int
    cameras: list[str]
    propose: list[Sighting]


class PersonAnswer(Answer):
    """All sightings of a person, by camera and time."""

    person: str
    sightings: list[Sighting]
    cameras: list[str]


class Taught(Answer):
    """One answer."""

    key: str
    kind: Literal["same", "different", "name", "confirm"]
    a: str
    b: str
    person: str
    who: str
    when: float
    waiting: bool = False


class TrayAnswer(Answer):
    """All answers that were not undone, newest first."""

    taught: list[Taught]


class TeachAnswer(Answer):
    """The result of an answer."""

    taught: Taught | None
    person: str
    total: int


class LogAnswer(Answer):
    """The latest entries of the log, newest first, and the head of its chain."""

    head: str
    entries: list[dict[str, Any]]


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
