"""The first page: pick a sighting or upload an image."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from resight.web.answers import BrowseAnswer, sighting
from resight.web.visiting import Viewer

router = APIRouter()
_PER_PAGE = 48

_Camera = Annotated[str, Query(description="only this camera")]
_Known = Annotated[str, Query(description="yes: labelled, no: unknown, empty: all")]
_Page = Annotated[int, Query(ge=1)]
_Track = Annotated[str, Query(description="only the track of this sighting")]


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def index(
    visit: Viewer, camera: _Camera = "", known: _Known = "", track: _Track = "", page: _Page = 1
) -> HTMLResponse:
    """Show the gallery."""
    visit.site.expire_sometimes()
    answer = index_json(visit, camera, known, track, page)
    return visit.page("browse.html", answer=answer, camera=camera, known=known, track=track)


@router.get("/index.json", response_model=BrowseAnswer, tags=["gallery"])
def index_json(
    visit: Viewer, camera: _Camera = "", known: _Known = "", track: _Track = "", page: _Page = 1
) -> BrowseAnswer:
    """List sightings, a page at a time."""
    view = visit.site.gallery.view
    chosen = np.ones(len(view.table), bool)
    if camera:
        chosen &= view.table.cameras == camera
    if known in ("yes", "no"):
        chosen &= (view.persons != "") == (known == "yes")
    if track:
        visit.stored(track)
        chosen &= view.tracks == view.tracks[view.rows[track]]
    rows = np.flatnonzero(chosen)
    pages = max(1, math.ceil(len(rows) / _PER_PAGE))
    page = min(page, pages)
    shown = rows[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    filters = {"camera": camera, "known": known, "page": page}
    visit.record("browse", shown=view.table.ids[shown].tolist(), filters=filters)
    return BrowseAnswer(
        sightings=[sighting(view, row) for row in shown.tolist()],
        total=len(rows),
        page=page,
        pages=pages,
        cameras=view.cameras,
    )


@router.get("/info.json", tags=["gallery"])
def info_json(visit: Viewer) -> dict[str, Any]:
    """Summarise the gallery; `csrf` is the token that changes in this session need."""
    return {**visit.site.gallery.info(), "csrf": visit.csrf}


@router.get("/openapi.json", include_in_schema=False)
def openapi_json(visit: Viewer) -> dict[str, Any]:
    """Describe the API."""
    return dict(visit.request.app.openapi())
