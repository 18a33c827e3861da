"""Answers: same, different, a name, undo; the list of answers; labels as CSV."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse, Response

from resight.gallery.exporting import export
from resight.gallery.groups import accept
from resight.gallery.labels import Entry
from resight.gallery.view import View
from resight.web.answers import Taught, TeachAnswer, TrayAnswer, answers_about, place, said_of
from resight.web.visiting import Page, Teacher, Teaching, Text, Viewer, Visit, twins

router = APIRouter()

_PER_PAGE = 100


@router.post("/teach", response_model=TeachAnswer, tags=["teaching"])
def teach(
    visit: Teaching,
    kind: Annotated[Literal["same", "different", "unsure"], Form()],
    a: Annotated[str, Form(description="the query sighting")],
    b: Annotated[str, Form(description="the sighting in the results")],
    back: Text = "/",
    model: Annotated[str, Form(description="the model whose results are being answered")] = "",
) -> Any:
    """Say of two sightings: same person, different people or not sure; replaces what was said."""

    def entries(view: View) -> list[Entry]:
        said, key = answers_about(view.labels, a).get(b, (None, ""))
        earlier = [Entry("undo", key)] if key and said not in (kind, "waiting") else []
        return [*earlier, Entry(kind, a, b)]

    entry = visit.site.gallery.answer(entries, visit.by)[-1]
    if not visit.by_htmx:
        return taught_answer(visit, entry, back)
    part = _card(visit, a, b)
    if model and model != visit.site.gallery.view.manifest.current.fingerprint:
        part.headers["HX-Trigger-After-Swap"] = "refitted"  # the results are an older model's
    return part


@router.post("/name", response_model=TeachAnswer, tags=["teaching"])
def name(
    visit: Teaching,
    a: Annotated[str, Form(description="any sighting of the person")],
    person: Annotated[str, Form(description="the new name")],
    back: Text = "/",
) -> Any:
    """Name the person of a sighting; an unknown one joins the person who has that name."""
    gallery = visit.site.gallery
    if gallery.view.labels.person(visit.stored(a).id) or not person.strip():
        entry = gallery.teach("name", a, person=person, by=visit.by)
    else:
        entry = accept(gallery, [a], name=person, by=visit.by)[0]
    return taught_answer(visit, entry, back)


@router.post("/none", response_model=TeachAnswer, tags=["teaching"])
def none_of_these(
    visit: Teaching,
    a: Annotated[str, Form(description="the query sighting")],
    person: Annotated[str, Form(description="the name of the new person")],
    hits: Annotated[list[str] | None, Form(description="results that show somebody else")] = None,
) -> Any:
    """Say that none of the results shows the query: it is a new person."""

    def entries(view: View) -> list[Entry]:
        others = [one for one in hits or () if view.labels.verdict(a, one) is None]
        apart = [Entry.of("different", a, others)] if others else []
        return [*apart, Entry("name", a, person=person)]

    entry = visit.site.gallery.answer(entries, visit.by)[-1]
    query = urlencode({"name": person.strip(), "did": entry.key})
    return taught_answer(visit, entry, f"/person?{query}")


@router.post("/undo", response_model=TeachAnswer, tags=["teaching"])
def undo(
    visit: Teaching,
    key: Annotated[str, Form(description="the answer to undo; empty: the latest")] = "",
    a: Text = "",
    b: Text = "",
    back: Text = "/",
) -> Any:
    """Undo an answer, with all that was said by the same click."""
    active = visit.site.gallery.view.labels.active
    key = key or (active[-1].key if active else "")
    visit.site.gallery.teach("undo", key, by=visit.by)  # refuses an empty key
    undone = next((entry for entry in active if entry.key == key), None)
    if visit.by_htmx and a and b:
        return _card(visit, a, b)
    return taught_answer(visit, undone, back)


@twins(router, "/taught", TrayAnswer, "teaching")
def taught(visit: Viewer, page: Page = 1) -> Any:
    """List the answers that were not undone, a page at a time."""
    labels = visit.site.gallery.view.labels
    waiting = {entry.key for entry in labels.waiting}
    listed = sorted((*labels.active, *labels.waiting), key=lambda entry: -entry.when)
    page, pages = place(page, len(listed), _PER_PAGE)
    listed = listed[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    visit.record("answers", shown=sorted({key for entry in listed for key in entry.sightings}))
    answers = [Taught(**vars(entry), waiting=entry.key in waiting) for entry in listed]
    return visit.answer("taught.html", TrayAnswer(taught=answers, page=page, pages=pages))


@router.get("/labels.csv", tags=["exports"])
@router.get("/answers.csv", tags=["exports"])
@router.get("/labels.json", tags=["exports"])
@router.get("/labels.coco.json", tags=["exports"])
def exported(
    visit: Teacher, person: Annotated[str, Query(description="only this person")] = ""
) -> Response:
    """Export labelled sightings as CSV or COCO, answers as CSV, or both as JSON."""
    file = visit.request.url.path[1:]
    form: Any = {"labels.csv": "csv", "labels.json": "json", "labels.coco.json": "coco"}
    view = visit.site.gallery.view
    text = export(visit.site.gallery, form.get(file, file), person)
    chosen = view.persons == person if person else view.persons != ""
    visit.record("export labels", shown=view.table.ids[chosen].tolist())
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    kind = "text/csv" if file.endswith(".csv") else "application/json"
    return Response(text, headers=headers, media_type=kind)


def taught_answer(visit: Visit, entry: Entry | None, back: str) -> Any:
    """Answer a change: the new state for programs, the page `back` for browsers."""
    labels = visit.site.gallery.view.labels
    person = labels.person(entry.sightings[0]) if entry and entry.sightings else ""
    return visit.done(TeachAnswer(taught=entry, person=person, total=len(labels.active)), back)


def _card(visit: Visit, a: str, b: str) -> HTMLResponse:
    """Return the answers of one card and the names, for htmx to put in place."""
    view = visit.site.gallery.view
    verdict, key = said_of(view.labels, a, b)
    about: dict[str, Any] = {"like": a, "query": visit.stored(a), "hit": visit.stored(b)}
    model = view.manifest.current.fingerprint
    return visit.page("verdict_part.html", **about, verdict=verdict, key=key, model=model)
