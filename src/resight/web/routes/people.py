"""A person's page."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from resight.web.answers import PersonAnswer, sighting
from resight.web.security import RefusedError
from resight.web.visiting import Viewer

router = APIRouter()

_Name = Annotated[str, Query(description="the person's name")]


@router.get("/person", response_class=HTMLResponse, include_in_schema=False)
def person(visit: Viewer, name: _Name) -> HTMLResponse:
    """Show all sightings of a person on a timeline by camera."""
    answer = person_json(visit, name)
    times = [one.time for one in answer.sightings if one.time is not None]
    span = (min(times), max(times)) if times else None
    return visit.page("person.html", answer=answer, span=span)


@router.get("/person.json", response_model=PersonAnswer, tags=["gallery"])
def person_json(visit: Viewer, name: _Name) -> PersonAnswer:
    """List all sightings of a person, by time."""
    view = visit.site.gallery.view
    rows = np.flatnonzero(view.persons == name) if name else np.empty(0, np.intp)
    if not len(rows):
        raise RefusedError(404, f"no person named {name!r} in this gallery")
    order = np.argsort(np.nan_to_num(view.table.times[rows], nan=np.inf), kind="stable")
    seen = [sighting(view, row) for row in rows[order].tolist()]
    visit.record("person", persons=[name], shown=[one.id for one in seen])
    return PersonAnswer(person=name, sightings=seen, cameras=sorted({one.camera for one in seen}))
