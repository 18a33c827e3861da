"""Data of the pages, which are also available as JSON."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from resight.gallery.labels import Labels, Verdict
from resight.gallery.view import View

# Words of the API, with examples.
Id = Annotated[str, Field(examples=["024afb528fc94f3d80f638b3"])]
Name = Annotated[str, Field(examples=["Backpack"])]
Camera = Annotated[str, Field(examples=["entrance"])]
Seconds = Annotated[float, Field(examples=[1700000000.0])]
Share = Annotated[float, Field(examples=[0.93])]
Count = Annotated[int, Field(examples=[3])]
Key = Annotated[str, Field(examples=["9f3c6a1be07d4c52"])]
Model = Annotated[str, Field(examples=["dbe0a8bd9ad8"])]
Said = Verdict | Literal["unsure"]


class Answer(BaseModel):
    """Data of a page; what is of the same shape, such as a `Hit`, is taken as it is."""

    model_config = ConfigDict(from_attributes=True)


class Sighting(Answer):
    """One stored crop of a person."""

    id: Id
    person: Name
    camera: Camera
    time: Seconds | None
    source: str
    track: str = ""

    @property
    def image(self) -> str:
        """Address of its image."""
        return f"/image/{self.id}"


class Found(Sighting):
    """A sighting that a search found; it stands for its track, which has `sightings` of them.

    `distance` is smaller = more similar, 1 where same and different are equally likely, if the
    model is calibrated; `probability` that of the track, person or group that `unit` names.
    """

    rank: int
    distance: float
    raw_distance: float
    probability: Share | None
    unit: str
    sightings: int = 1
    same_picture: bool
    trained: bool
    verdict: Said | None
    answer: str = ""  # key of the answer that was given about these two, to undo it


class Widening(Answer):
    """A wider filter, when a search found nothing."""

    words: Annotated[str, Field(examples=["any camera"])]
    address: str


class PresenceAnswer(Answer):
    """Whether the person is in the gallery; see `resight.gallery.confidence`."""

    answer: Literal["found", "unsure", "absent"]
    words: Annotated[str, Field(examples=["Found in this gallery"])]
    why: str
    measured: dict[str, float]
    false_accepts: float
    false_rejects: float
    compared: Count


class Asked(Answer):
    """One picture of a query: a stored sighting or an uploaded image."""

    image: str
    name: Camera
    id: str = ""
    upload: str = ""


class SearchAnswer(Answer):
    """The sightings most similar to stored ones (`like`) or uploaded images (`upload`).

    Several images are one query: they show one person. `like`, `upload`, `name` and `query` are
    those of the first.
    """

    like: Id
    upload: str
    name: str
    query: Sighting | None
    asked: list[Asked]
    hits: list[Found]
    same_pictures: list[Found]
    presence: PresenceAnswer | None
    note: str
    missing: str = ""  # what was not searched, if a worker of the cluster was lost
    widen: list[Widening]
    model: Model


class Explained(Answer):
    """Why a result looks alike or different; `explanation` has schema resight.explanation/1."""

    like: Id
    upload: str
    query: Sighting | None
    hit: Sighting
    model: Model
    explanation: dict[str, Any]


class BrowseAnswer(Answer):
    """A page of the gallery."""

    sightings: list[Sighting]
    total: Count
    page: int
    pages: int
    cameras: list[str]


class PersonCard(Answer):
    """A person in brief; `version` is what a correction carries as `seen`."""

    name: Name
    cover: Id
    sightings: Count
    cameras: list[Camera]
    last_seen: Seconds | None
    version: str
    distance: float | None = None


class PeopleAnswer(Answer):
    """A page of people."""

    people: list[PersonCard]
    total: Count
    page: int
    pages: int


class PersonAnswer(Answer):
    """A person: the card, all sightings by time, and the most similar other people."""

    person: Name
    card: PersonCard
    sightings: list[Sighting]
    cameras: list[str]
    similar: list[PersonCard]


class Proposed(Answer):
    """Unknown sightings that seem to show one person; `sure` that they do."""

    key: Key
    sightings: list[str]
    shown: list[Sighting]
    sure: Share


class UnknownsAnswer(Answer):
    """The next group of unknowns, how many are open, and sightings that nothing looks like."""

    group: Proposed | None
    open: Count
    unknown: int
    rule: str
    stale: bool
    farthest: list[Sighting]


class Taught(Answer):
    """One answer."""

    key: Key
    kind: str
    a: Id
    b: Id
    more: list[str] = []
    person: str
    who: str
    when: float
    waiting: bool = False


class TrayAnswer(Answer):
    """All answers that were not undone, newest first."""

    taught: list[Taught]
    page: int = 1
    pages: Count = 1


class TeachAnswer(Answer):
    """The result of an answer."""

    taught: Taught | None
    person: Name
    total: Count


class JobAnswer(Answer):
    """A job of the gallery; see `resight.gallery.jobs.Job`."""

    key: Annotated[str, Field(examples=["1700000000000-9f3c6a1b"])]
    kind: Literal["add", "improve", "rebuild", "group"]
    by: dict[str, str]
    settings: dict[str, Any]
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    words: Annotated[str, Field(examples=["adding"])]
    share: Share
    done: int
    total: int
    failures: list[list[str]]
    failed: int
    result: dict[str, Any]
    created: float
    ended: float | None


class JobsAnswer(Answer):
    """All jobs that are kept, newest first, and how many are open."""

    jobs: list[JobAnswer]
    open: Count


class RefitState(Answer):
    """Where it is; `before` and `after` are percentages of rank 1 on people held out.

    "ready": a better model waits to be adopted; "worse": one that finds no more. `gain` is the 95%
    interval of the difference, by resampling the people; `certain` whether chance would rarely
    make such a gain.
    """

    status: Literal["idle", "running", "ready", "worse", "done", "failed", "undone"] = "idle"
    words: str = ""
    share: float = 0.0
    before: Annotated[float | None, Field(examples=[71.0])] = None
    after: float | None = None
    gain: tuple[float, float] | None = None
    certain: bool = False
    queries: int = 0
    people: int = 0
    missing: str | None = None
    learned: dict[str, int]
    can_undo: bool = False
    models: list[dict[str, Any]]


class Kept(Answer):
    """Sightings made of uploaded images."""

    sightings: list[Id]


class LogAnswer(Answer):
    """The latest entries of the log, newest first, and the head of its chain."""

    head: Annotated[str, Field(examples=["1042:9f3c6a1be07d4c52"])]
    entries: list[dict[str, Any]]


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
