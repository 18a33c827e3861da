"""Improve model: train, watch, adopt, go back."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, JSONResponse, Response

from resight.web.refitting import RefitState, state
from resight.web.refitting import undo as go_back
from resight.web.visiting import Administering, Viewer, Visit, lead_to

router = APIRouter()


@router.get("/refit", response_class=HTMLResponse, include_in_schema=False)
def watch(visit: Viewer) -> HTMLResponse:
    """Show what was learned since, the latest new model and the history (also as a part)."""
    return _page(visit)


@router.get("/refit.json", response_model=RefitState, tags=["improving"])
def watch_json(visit: Viewer) -> RefitState:
    """Return what was learned since, and the state and gain of the latest new model."""
    return state(visit.site.jobs)


@router.post("/refit", response_model=RefitState, tags=["improving"])
def start(visit: Administering) -> Response:
    """Train a model on all answers in the background and measure it; nothing is adopted yet."""
    visit.record("retrain")
    visit.site.jobs.start("improve", visit.by)
    return _answer(visit)


@router.post("/refit/adopt", response_model=RefitState, tags=["improving"])
def adopt(visit: Administering) -> Response:
    """Use the model that was trained."""
    visit.record("adopt model")
    visit.site.jobs.start("rebuild", visit.by)
    return _answer(visit)


@router.post("/refit/undo", response_model=RefitState, tags=["improving"])
def undo(visit: Administering) -> Response:
    """Go back to the model before the last one."""
    visit.record("undo model")
    go_back(visit.site.jobs)
    return _answer(visit)


def _answer(visit: Visit) -> Response:
    if visit.wants_json:
        return JSONResponse(state(visit.site.jobs).model_dump())
    return _page(visit) if visit.by_htmx else lead_to("/refit")


def _page(visit: Visit) -> HTMLResponse:
    current = visit.site.gallery.view.manifest.current
    return visit.page("refit.html", refit=state(visit.site.jobs), current=current)
