"""The first page: pick a sighting or upload an image."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query

from resight.web.answers import BrowseAnswer, place, sighting
from resight.web.visiting import Viewer, twins

router = APIRouter()
_PER_PAGE = 48

_Camera = Annotated[str, Query(description="only this camera")]
_Known = Annotated[str, Query(description="yes: labelled, no: unknown, empty: all")]
_Page = Annotated[int, Query(ge=1)]
_Track = Annotated[str, Query(description="only the track of this sighting")]


@twins(router, "/", BrowseAnswer, "gallery")
def index(
    visit: Viewer, camera: _Camera = "", known: _Known = "", track: _Track = "", page: _Page = 1
) -> Any:
    """List sightings, a page at a time."""
    visit.site.expire_sometimes()
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
    page, pages = place(page, len(rows), _PER_PAGE)
    shown = rows[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    filters = {"camera": camera, "known": known, "page": page}
    visit.record("browse", shown=view.table.ids[shown].tolist(), filters=filters)
    answer = BrowseAnswer(
        sightings=[sighting(view, row) for row in shown.tolist()],
        total=len(rows),
        page=page,
        pages=pages,
        cameras=view.cameras,
    )
    return visit.answer("browse.html", answer, camera=camera, known=known, track=track)


@router.get("/info.json", tags=["gallery"])
def info_json(visit: Viewer) -> dict[str, Any]:
    """Summarise the gallery; `csrf` is the token that changes in this session need."""
    return {**visit.site.gallery.info(), "csrf": visit.csrf}


@router.get("/openapi.json", include_in_schema=False)
def openapi_json(visit: Viewer) -> dict[str, Any]:
    """Describe the API."""
    return dict(visit.request.app.openapi())
