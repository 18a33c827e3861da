"""Answers: same, different, a name, undo; the list of answers; labels as CSV."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Literal
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from resight.errors import InputError
from resight.gallery.labels import Entry
from resight.web.answers import Taught, TeachAnswer, TrayAnswer, sighting
from resight.web.visiting import Teacher, Teaching, Viewer, Visit, lead_to

router = APIRouter()

_Text = Annotated[str, Form()]


@router.post("/teach", response_model=TeachAnswer, tags=["teaching"])
def teach(
    visit: Teaching,
    kind: Annotated[Literal["same", "different"], Form()],
    a: Annotated[str, Form(description="the query sighting")],
    b: Annotated[str, Form(description="the sighting in the results")],
    back: _Text = "/",
) -> Response:
    """Say that two sightings show the same person, or different people."""
    entry = visit.site.gallery.teach(kind, a, b, by=visit.by)
    if visit.by_htmx:
        return _card(visit, a, b)
    return _answer(visit, entry, a, back)


@router.post("/name", response_model=TeachAnswer, tags=["teaching"])
def name(
    visit: Teaching,
    a: Annotated[str, Form(description="any sighting of the person")],
    person: Annotated[str, Form(description="the new name")],
    back: _Text = "/",
) -> Response:
    """Give a person a name."""
    entry = visit.site.gallery.teach("name", a, person=person, by=visit.by)
    new = visit.site.gallery.view.labels.person(a)
    address = f"/person?{urlencode({'name': new})}" if back.startswith("/person") else back
    return _answer(visit, entry, a, address)


@router.post("/undo", response_model=TeachAnswer, tags=["teaching"])
def undo(
    visit: Teaching,
    key: Annotated[str, Form(description="the answer to undo; empty: the latest")] = "",
    back: _Text = "/",
) -> Response:
    """Undo an answer."""
    active = visit.site.gallery.view.labels.active
    if not key and not active:
        raise InputError("nothing to undo")
    visit.site.gallery.teach("undo", key or active[-1].key, by=visit.by)
    undone = next((entry for entry in active if entry.key == (key or active[-1].key)), None)
    if visit.wants_json:
        return _answer(visit, undone, undone.a if undone else "", back)
    return lead_to(back)


@router.get("/taught", response_class=HTMLResponse, include_in_schema=False)
def taught(visit: Viewer) -> HTMLResponse:
    """Show all answers."""
    return visit.page("taught.html", answer=taught_json(visit))


@router.get("/taught.json", response_model=TrayAnswer, tags=["teaching"])
def taught_json(visit: Viewer) -> TrayAnswer:
    """List all answers that were not undone."""
    labels = visit.site.gallery.view.labels
    listed = sorted((*labels.active, *labels.waiting), key=lambda entry: -entry.when)
    named = {key for entry in listed for key in (entry.a, entry.b) if key}
    visit.record("answers", shown=sorted(named))
    answers = [Taught.model_validate(entry) for entry in listed]
    for answer, entry in zip(answers, listed, strict=True):
        answer.waiting = entry in labels.waiting
    return TrayAnswer(taught=answers)


@router.get("/labels.csv", response_class=PlainTextResponse, tags=["teaching"])
def labels_csv(visit: Teacher) -> PlainTextResponse:
    """Export labelled sightings: id, person, camera, time, source."""
    view = visit.site.gallery.view
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["id", "person", "camera", "time", "source"])
    labelled = [sighting(view, row) for row in np.flatnonzero(view.persons != "").tolist()]
    for one in labelled:
        time = "" if one.time is None else repr(one.time)
        writer.writerow([one.id, _plain(one.person), _plain(one.camera), time, _plain(one.source)])
    visit.record("export labels", shown=[one.id for one in labelled])
    headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
    return PlainTextResponse(buffer.getvalue(), headers=headers, media_type="text/csv")


def _plain(text: str) -> str:
    """Keep spreadsheets from running a name as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _answer(visit: Visit, entry: Entry | None, a: str, back: str) -> Response:
    if not visit.wants_json:
        return lead_to(back)
    labels = visit.site.gallery.view.labels
    answer = TeachAnswer(
        taught=Taught.model_validate(entry) if entry else None,
        person=labels.person(a) if a else "",
        total=len(labels.active),
    )
    return JSONResponse(answer.model_dump())


def _card(visit: Visit, a: str, b: str) -> HTMLResponse:
    """Return the verdict of one card and the new tray, for htmx to put in place."""
    view = visit.site.gallery.view
    values = {
        "like": a,
        "query": sighting(view, view.rows[a]),
        "hit": sighting(view, view.rows[b]),
        "verdict": view.labels.verdict(a, b),
    }
    return visit.page("verdict_part.html", **values)
