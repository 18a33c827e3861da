"""People: the grid, a person's page, and what corrects a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse

from resight.errors import InputError
from resight.gallery import people as correcting
from resight.gallery.forgetting import forget
from resight.gallery.labels import Entry
from resight.gallery.manifest import trained_on
from resight.web.answers import PeopleAnswer, PersonAnswer, PersonCard, TeachAnswer, place, sighting
from resight.web.routes.teaching import taught_answer
from resight.web.security import RefusedError
from resight.web.visiting import Administering, Administrator, Teaching, Viewer, Visit, twins

router = APIRouter()
_PER_PAGE = 60

_Name = Annotated[str, Query(description="the person's name")]
_Person = Annotated[str, Form(description="the person's name")]
_Sightings = Annotated[list[str] | None, Form(description="ids of some of the person's sightings")]
_Order = Annotated[str, Query(description="name, sightings or seen")]
_Page = Annotated[int, Query(ge=1)]
_Wanted = Annotated[str, Query(description="part of a name")]


@twins(router, "/people", PeopleAnswer, "people")
def people(visit: Viewer, query: _Wanted = "", order: _Order = "seen", page: _Page = 1) -> Any:
    """List people, a page at a time."""
    by: Any = order
    view = visit.site.gallery.view
    cards, total = correcting.people(view, query, page, per_page=_PER_PAGE, order=by)
    visit.record("people", shown=[card.cover for card in cards], filters={"page": page})
    page, pages = place(page, total, _PER_PAGE)
    answer = PeopleAnswer(people=_cards(cards), total=total, page=page, pages=pages)
    return visit.answer("people.html", answer, q=query, order=order)


@router.get("/people/similar.json", response_model=PeopleAnswer, tags=["people"])
def similar_json(visit: Viewer, name: _Name) -> PeopleAnswer:
    """List the people most like one, nearest first: candidates for a merge."""
    cards = correcting.similar_people(visit.site.gallery.view, name)
    visit.record("people", persons=[name], shown=[card.cover for card in cards])
    return PeopleAnswer(people=_cards(cards), total=len(cards), page=1, pages=1)


def _cards(cards: list[correcting.Card]) -> list[PersonCard]:
    return [PersonCard.model_validate(card) for card in cards]


@twins(router, "/person", PersonAnswer, "people")
def person(visit: Viewer, name: _Name) -> Any:
    """List all sightings of a person by time, and the most similar people."""
    answer = _person(visit, name)
    times = [one.time for one in answer.sightings if one.time is not None]
    span = (min(times), max(times)) if times else None
    tracks: dict[tuple[str, str], list[Any]] = {}
    for one in answer.sightings:
        tracks.setdefault((one.camera, one.track or one.id), []).append(one)
    return visit.answer("person.html", answer, span=span, tracks=tracks, last=visit.just_said)


def _person(visit: Visit, name: str) -> PersonAnswer:
    view = visit.site.gallery.view
    if not name or name not in view.named:
        raise RefusedError(404, f"no person named {name!r} in this gallery")
    rows = view.people.rows(view.people.place(name))
    order = np.argsort(np.nan_to_num(view.table.times[rows], nan=np.inf), kind="stable")
    seen = [sighting(view, row) for row in rows[order].tolist()]
    similar = correcting.similar_people(view, name, 6)
    shown = [*(one.id for one in seen), *(card.cover for card in similar)]
    visit.record("person", persons=[name], shown=shown)
    return PersonAnswer(
        person=name,
        card=PersonCard.model_validate(correcting.person(view, name)),
        sightings=seen,
        cameras=sorted({one.camera for one in seen}),
        similar=_cards(similar),
    )


@router.post("/people/{verb}", response_model=TeachAnswer, tags=["people"])
def correct(
    visit: Teaching,
    verb: Literal["rename", "merge", "split", "detach", "cover"],
    name: _Person,
    sighting: _Sightings = None,
    new: Annotated[str, Form(description="the new name (rename, split)")] = "",
    other: Annotated[str, Form(description="who becomes one with this person (merge)")] = "",
    seen: Annotated[str, Form(description="`version` of the person as it was seen")] = "",
) -> Any:
    """Correct a person: some sightings are somebody new, unknown again, or the cover."""
    chosen, how = sighting or [], {"seen": seen, "by": visit.by}
    if verb == "cover" and len(chosen) != 1:
        raise InputError("select one sighting for the cover")
    given: dict[str, tuple[Any, ...]] = {
        "rename": (new,),
        "merge": (other.strip(),),
        "split": (chosen, new),
        "detach": (chosen,),
        "cover": (*chosen,),
    }
    act = getattr(correcting, "set_cover" if verb == "cover" else verb)
    entry: Entry = act(visit.site.gallery, name, *given[verb], **how)
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
