"""Unknowns: sightings of nobody in particular, proposed as people, one group at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Form, Query

from resight.gallery.groups import Groups, accept, not_sure, open_groups
from resight.gallery.labels import Entry
from resight.web.answers import Proposed, TeachAnswer, UnknownsAnswer
from resight.web.answers import sighting as describe
from resight.web.routes.teaching import taught_answer
from resight.web.visiting import Teaching, Viewer, Visit, twins

router = APIRouter()
_FARTHEST = 12

_After = Annotated[str, Query(description="key of the group to go on after")]
_Text = Annotated[str, Form()]
_Ids = Annotated[list[str] | None, Form(description="ids of sightings")]


@twins(router, "/unknowns", UnknownsAnswer, "people")
def unknowns(visit: Viewer, after: _After = "") -> Any:
    """Return the next group of unknown sightings, as computed in the background."""
    gallery = visit.site.gallery
    view, kept = gallery.view, Groups.read(gallery.engine)
    groups = list(open_groups(gallery))
    keys = [one.key for one in groups]
    start = keys.index(after) + 1 if after in keys else 0
    group = next(iter(groups[start:]), None)
    far = [key for key in (kept.farthest if kept else []) if key in view.rows]
    far = [key for key in far if not view.labels.person(key)][:_FARTHEST]
    visit.record("unknowns", shown=[*(group.sightings if group else []), *far])
    proposed = None
    if group is not None:
        pictures = [describe(view, view.rows[key]) for key in group.sightings]
        proposed = Proposed(shown=pictures, **asdict(group))
    answer = UnknownsAnswer(
        group=proposed,
        open=len(groups),
        unknown=int(np.count_nonzero(view.persons == "")),
        rule=kept.rule if kept else "",
        stale=kept is None or kept.stale(view),
        farthest=[describe(view, view.rows[key]) for key in far],
    )
    last = visit.just_said
    values: dict[str, Any] = {
        "last": last,
        "saved": view.labels.person(last.a) if last else "",
        "calibrated": getattr(view.model, "calibration", None) is not None,
    }
    return visit.answer("unknowns.html", answer, **values)


@router.post("/unknowns/accept", response_model=TeachAnswer, tags=["people"])
def accept_group(
    visit: Teaching,
    sighting: _Ids = None,
    dropped: _Ids = None,
    shown: _Ids = None,
    name: _Text = "",
) -> Any:
    """Make sightings one person; those `dropped`, or only `shown`, are somebody else."""
    kept = sighting or []
    others = [*(dropped or []), *(key for key in shown or () if key not in kept)]
    entries = accept(visit.site.gallery, kept, dropped=others, name=name, by=visit.by)
    return _next(visit, entries[0])


@router.post("/unknowns/unsure", response_model=TeachAnswer, tags=["people"])
def unsure_group(visit: Teaching, sighting: _Ids = None, shown: _Ids = None) -> Any:
    """Say that one cannot tell whether sightings show one person; they come back at the end."""
    return _next(visit, not_sure(visit.site.gallery, shown or sighting or [], by=visit.by))


def _next(visit: Visit, entry: Entry) -> Any:
    return taught_answer(visit, entry, f"/unknowns?{urlencode({'did': entry.key})}")
