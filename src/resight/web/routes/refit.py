"""Retraining: start, watch, adopt, undo."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, JSONResponse, Response

from resight.web.refitting import RefitState
from resight.web.visiting import Administering, Viewer, Visit, lead_to

router = APIRouter()

_Back = Annotated[str, Form()]


@router.get("/refit", response_class=HTMLResponse, include_in_schema=False)
def watch(visit: Viewer) -> HTMLResponse:
    """Show the progress of retraining (also as a part of other pages)."""
    if visit.by_htmx:
        return _part(visit)
    return visit.page("refit.html")


@router.get("/refit.json", response_model=RefitState, tags=["refit"])
def watch_json(visit: Viewer) -> RefitState:
    """Return the progress of retraining and its gain."""
    return visit.site.job.state()


@router.post("/refit", response_model=RefitState, tags=["refit"])
def start(visit: Administering, back: _Back = "/refit") -> Response:
    """Train the model again on all labelled sightings, in the background."""
    visit.record("retrain")
    visit.site.job.start(visit.by)
    return _answer(visit, back)


@router.post("/refit/adopt", response_model=RefitState, tags=["refit"])
def adopt(visit: Administering, back: _Back = "/refit") -> Response:
    """Use the retrained model although cross-validation found it worse."""
    visit.record("adopt model")
    visit.site.job.adopt_anyway(visit.by)
    return _answer(visit, back)


@router.post("/refit/undo", response_model=RefitState, tags=["refit"])
def undo(visit: Administering, back: _Back = "/refit") -> Response:
    """Go back to the model before the last retraining."""
    visit.record("undo model")
    visit.site.job.undo()
    return _answer(visit, back)


def _answer(visit: Visit, back: str) -> Response:
    if visit.wants_json:
        return JSONResponse(visit.site.job.state().model_dump())
    return _part(visit) if visit.by_htmx else lead_to(back)


def _part(visit: Visit) -> HTMLResponse:
    part, state = visit.page("refit_part.html"), visit.site.job.state()
    if state.status in ("done", "undone"):
        # Another model is in use: the results on the page ask for themselves again.
        part.headers["HX-Trigger"] = "refitted"
    return part
