"""Data of the pages, which are also available as JSON: shapes of the gallery, put together."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from resight.gallery.confidence import Presence
from resight.gallery.groups import Group
from resight.gallery.jobs import Job
from resight.gallery.labels import Entry, Labels, Verdict
from resight.gallery.people import Card
from resight.gallery.searching import Hit
from resight.gallery.view import View

Said = Verdict | Literal["unsure"]


class Sighting(BaseModel):
    """One stored crop of a person; its image is at /image/{id}."""

    id: str
    person: str
    camera: str
    time: float | None
    source: str
    track: str = ""


@dataclass(frozen=True)
class Found(Hit):
    """A sighting that a search found; it stands for its track, which has `sightings` of them.

    `answer` is the key of the answer that was given about it and the query, to undo it.
    """

    verdict: Said | None = None  # type: ignore[assignment]  # a page also shows "not sure"
    sightings: int = 1
    answer: str = ""


class Widening(BaseModel):
    """A wider filter, when a search found nothing."""

    words: str
    address: str


class Asked(BaseModel):
    """One picture of a query: a stored sighting or an uploaded image."""

    image: str
    name: str
    id: str = ""
    upload: str = ""


class SearchAnswer(BaseModel):
    """The sightings most similar to stored ones (`like`) or uploaded images (`upload`).

    Several images are one query: they show one person. `like`, `upload`, `name` and `query` are
    those of the first.
    """

    like: str
    upload: str
    name: str
    query: Sighting | None
    asked: list[Asked]
    hits: list[Found]
    same_pictures: list[Hit]
    presence: Presence | None
    note: str
    missing: str = ""  # what was not searched, if a worker of the cluster was lost
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


class PeopleAnswer(BaseModel):
    """A page of people; the `version` of one is what a correction carries as `seen`."""

    people: list[Card]
    total: int
    page: int
    pages: int


class PersonAnswer(BaseModel):
    """A person: the card, all sightings by time, and the most similar other people."""

    person: str
    card: Card
    sightings: list[Sighting]
    cameras: list[str]
    similar: list[Card]


@dataclass(frozen=True)
class Proposed(Group):
    """Unknown sightings that seem to show one person."""

    shown: list[Sighting]


class UnknownsAnswer(BaseModel):
    """The next group of unknowns, how many are open, and sightings that nothing looks like."""

    group: Proposed | None
    open: int
    unknown: int
    rule: str
    stale: bool
    farthest: list[Sighting]


@dataclass(frozen=True)
class Taught(Entry):
    """An answer; it may be `waiting` for a second person."""

    waiting: bool = False


class TrayAnswer(BaseModel):
    """All answers that were not undone, newest first."""

    taught: list[Taught]
    page: int
    pages: int


class TeachAnswer(BaseModel):
    """The result of an answer."""

    taught: Entry | None
    person: str
    total: int


class JobsAnswer(BaseModel):
    """All jobs that are kept, newest first, and how many are open."""

    jobs: list[Job]
    open: int


class RefitState(BaseModel):
    """Where it is; `before` and `after` are percentages of rank 1 on people held out.

    "ready": a better model waits to be adopted; "worse": one that finds no more. `gain` is the 95%
    interval of the difference, by resampling the people; `certain` whether chance would rarely
    make such a gain.
    """

    status: Literal["idle", "running", "ready", "worse", "done", "failed", "undone"] = "idle"
    words: str = ""
    share: float = 0.0
    before: float | None = None
    after: float | None = None
    gain: tuple[float, float] | None = None
    certain: bool = False
    queries: int = 0
    people: int = 0
    missing: str | None = None
    learned: dict[str, int]
    can_undo: bool = False
    models: list[dict[str, Any]]


class LogAnswer(BaseModel):
    """The latest entries of the log, newest first, and the head of its chain."""

    head: str
    entries: list[dict[str, Any]]


# Examples of fields, by name, in the description of the API.
_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
_TYPES = {str: "string", float: "number", int: "integer"}


def add_examples(document: dict[str, Any]) -> dict[str, Any]:
    """Give the fields in a description of the API their examples."""
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            types = [one.get("type") for one in field.get("anyOf", [field])]
            if name in _EXAMPLES and _TYPES[type(_EXAMPLES[name])] in types:
                field["examples"] = [_EXAMPLES[name]]
    return document


def place(page: int, total: int, per_page: int) -> tuple[int, int]:
    """Return which page is shown when one was asked for, and how many there are."""
    pages = max(1, math.ceil(total / per_page))
    return min(page, pages), pages


def sighting(view: View, row: int) -> Sighting:
    """Describe the sighting in a row of the table."""
    table, time = view.table, float(view.table.times[row])
    return Sighting(
        id=str(table.ids[row]),
        person=str(view.persons[row]),
        camera=str(table.cameras[row]),
        time=None if np.isnan(time) else time,
        source=str(table.sources[row]),
        track=str(table.sequences[row]),
    )


def answers_about(labels: Labels, query: str) -> dict[str, tuple[Said, str]]:
    """Return what was said of a sighting and each other one, with the key of the answer.

    What follows from other answers is left out: it is changed where it was said.
    """
    found: dict[str, tuple[Said, str]] = {}
    for waiting, entries in ((False, labels.active), (True, labels.waiting)):
        for entry in entries:
            if query not in entry.sightings or entry.kind not in ("same", "different", "unsure"):
                continue
            apart = entry.kind == "different" and entry.a != query  # of `a` and each of the others
            said: Any = "waiting" if waiting else entry.kind
            key = entry.key if len(entry.sightings) == 2 else ""  # one undo would undo many
            about = [entry.a] if apart else entry.sightings
            found |= {other: (said, key) for other in about if other != query}
    return found


def said_of(labels: Labels, a: str, b: str) -> tuple[Said | None, str]:
    """Return what was said of two sightings, or follows, with the key that undoes it alone."""
    return answers_about(labels, a).get(b, (labels.verdict(a, b), ""))
