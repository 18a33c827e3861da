"""People: the grid, a person's page, what corrects a person, and unknowns proposed as people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse

from resight.errors import InputError
from resight.gallery import people as correcting
from resight.gallery.forgetting import forget
from resight.gallery.groups import Groups, accept, not_sure, open_groups
from resight.gallery.labels import Entry
from resight.gallery.manifest import trained_on
from resight.web import answers
from resight.web.answers import TeachAnswer, sighting
from resight.web.routes.teaching import taught_answer
from resight.web.security import RefusedError
from resight.web.visiting import Administering, Administrator, Page, Teaching, Viewer, Visit, twins

router = APIRouter()
_PER_PAGE, _FARTHEST = 60, 12

_Name = Annotated[str, Query(description="the person's name")]
_Person = Annotated[str, Form(description="the person's name")]
_Ids = Annotated[list[str] | None, Form(description="ids of sightings")]
_Order = Annotated[str, Query(description="name, sightings or seen")]
_After = Annotated[str, Query(description="key of the group to go on after")]
_Wanted = Annotated[str, Query(description="part of a name")]


@twins(router, "/people", answers.PeopleAnswer, "people")
def people(visit: Viewer, query: _Wanted = "", order: _Order = "seen", page: Page = 1) -> Any:
    """List people, a page at a time."""
    by: Any = order
    view = visit.site.gallery.view
    cards, total = correcting.people(view, query, page, per_page=_PER_PAGE, order=by)
    visit.record("people", shown=[card.cover for card in cards], filters={"page": page})
    page, pages = answers.place(page, total, _PER_PAGE)
    answer = answers.PeopleAnswer(people=cards, total=total, page=page, pages=pages)
    return visit.answer("people.html", answer, q=query, order=order)


@twins(router, "/person", answers.PersonAnswer, "people")
def person(visit: Viewer, name: _Name) -> Any:
    """List all sightings of a person by time, and the most similar people."""
    answer = _person(visit, name)
    tracks: dict[tuple[str, str], list[Any]] = {}
    for one in answer.sightings:
        tracks.setdefault((one.camera, one.track or one.id), []).append(one)
    return visit.answer("person.html", answer, tracks=tracks, last=visit.just_said)


def _person(visit: Visit, name: str) -> answers.PersonAnswer:
    view = visit.site.gallery.view
    if not name or name not in view.named:
        raise RefusedError(404, f"no person named {name!r} in this gallery")
    rows = view.people.rows(view.people.place(name))
    order = np.argsort(np.nan_to_num(view.table.times[rows], nan=np.inf), kind="stable")
    seen = [sighting(view, row) for row in rows[order].tolist()]
    similar = correcting.similar_people(view, name, 6)
    shown = [*(one.id for one in seen), *(card.cover for card in similar)]
    visit.record("person", persons=[name], shown=shown)
    return answers.PersonAnswer(
        person=name,
        card=correcting.person(view, name),
        sightings=seen,
        cameras=sorted({one.camera for one in seen}),
        similar=similar,
    )


@router.post("/people/{verb}", response_model=TeachAnswer, tags=["people"])
def correct(
    visit: Teaching,
    verb: correcting.Correction,
    name: _Person,
    sighting: _Ids = None,
    new: Annotated[str, Form(description="the new name (rename, split)")] = "",
    other: Annotated[str, Form(description="who becomes one with this person (merge)")] = "",
    seen: Annotated[str, Form(description="`version` of the person as it was seen")] = "",
) -> Any:
    """Correct a person: some sightings are somebody new, unknown again, or the cover."""
    how: Any = {"new": new, "other": other.strip(), "seen": seen, "by": visit.by}
    entry = correcting.correct(visit.site.gallery, verb, name, sighting or [], **how)
    now = entry.person.strip() if verb in ("rename", "split") else name
    left = now in visit.site.gallery.view.named  # "not this person" of the last one leaves nobody
    query = urlencode({"name": now, "did": entry.key})
    return taught_answer(visit, entry, f"/person?{query}" if left else "/people")


@router.get("/person/erase", response_class=HTMLResponse, include_in_schema=False)
def erase_form(visit: Administrator, name: _Name) -> HTMLResponse:
    """Say what erasing a person takes away, and ask."""
    gallery, answer = visit.site.gallery, _person(visit, name)
    ids = {one.id for one in answer.sightings}
    taught = sum(bool(ids & {*entry.sightings}) for entry in gallery.view.labels.active)
    generations = gallery.view.manifest.history
    models = sum(bool(ids & {*trained_on(gallery.engine, g.number)}) for g in generations)
    return visit.page("erase.html", answer=answer, taught=taught, models=models)


@router.post("/person/erase", tags=["people"])
def erase(
    visit: Administering,
    name: _Person,
    confirm: Annotated[str, Form(description="the name once more")] = "",
) -> Any:
    """Erase a person for good: sightings, images, answers, models trained on them, log."""
    if confirm.strip() != name:
        raise InputError(f"nothing was erased: type the name {name!r} to confirm")
    done = forget(visit.site.gallery, name, visit.by)
    if visit.wants_json:
        return {"sightings": done.sightings, "answers": done.labels}
    return visit.page("erased.html", done=done)


# ---- unknowns, proposed as people one group at a time


@twins(router, "/unknowns", answers.UnknownsAnswer, "people")
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
        pictures = [sighting(view, view.rows[key]) for key in group.sightings]
        proposed = answers.Proposed(shown=pictures, **asdict(group))
    answer = answers.UnknownsAnswer(
        group=proposed,
        open=len(groups),
        unknown=int(np.count_nonzero(view.persons == "")),
        rule=kept.rule if kept else "",
        stale=kept is None or kept.stale(view),
        farthest=[sighting(view, view.rows[key]) for key in far],
    )
    last, calibrated = visit.just_said, view.calibration is not None
    saved = view.labels.person(last.a) if last else ""
    return visit.answer("unknowns.html", answer, last=last, saved=saved, calibrated=calibrated)


@router.post("/unknowns/accept", response_model=TeachAnswer, tags=["people"])
def accept_group(
    visit: Teaching,
    sighting: _Ids = None,
    dropped: _Ids = None,
    shown: _Ids = None,
    name: Annotated[str, Form()] = "",
) -> Any:
    """Make sightings one person; those `dropped`, or only `shown`, are somebody else."""
    kept = sighting or []
    others = [*(dropped or []), *(key for key in shown or () if key not in kept)]
    return _next(visit, accept(visit.site.gallery, kept, dropped=others, name=name, by=visit.by)[0])


@router.post("/unknowns/unsure", response_model=TeachAnswer, tags=["people"])
def unsure_group(visit: Teaching, sighting: _Ids = None, shown: _Ids = None) -> Any:
    """Say that one cannot tell whether sightings show one person; they come back at the end."""
    return _next(visit, not_sure(visit.site.gallery, shown or sighting or [], by=visit.by))


def _next(visit: Visit, entry: Entry) -> Any:
    return taught_answer(visit, entry, f"/unknowns?{urlencode({'did': entry.key})}")
