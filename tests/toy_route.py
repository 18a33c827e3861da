"""What somebody who adds a route to the page writes (`web/routes/<name>.py`)."""

from __future__ import annotations

from fastapi import APIRouter

from resight.web.visiting import Viewer

router = APIRouter()


@router.get("/count.json")
def count(visit: Viewer) -> dict[str, int]:
    """Count the sightings."""
    return {"sightings": len(visit.site.gallery.view.table)}
