"""Searching: by a stored sighting or an uploaded image; filters are part of the URL."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.formparsers import MultiPartException, MultiPartParser

from resight.errors import InputError
from resight.web.answers import SearchAnswer, Widening, found, presence, sighting
from resight.web.security import MAX_BODY, RefusedError
from resight.web.visiting import Conditions, Viewer, Visit, Where, lead_to

router = APIRouter()

_Like = Annotated[str, Query(description="id of a stored sighting")]
_Upload = Annotated[str, Query(description="key returned by POST /upload")]


@router.get("/search", response_class=HTMLResponse, include_in_schema=False)
def search(visit: Viewer, where: Where, like: _Like = "", upload: _Upload = "") -> HTMLResponse:
    """Show the sightings most similar to the query."""
    answer = _search(visit, where, like, upload)
    cameras = visit.site.gallery.view.cameras
    return visit.page("search.html", answer=answer, where=where, cameras=cameras)


@router.get("/search.json", response_model=SearchAnswer, tags=["search"])
def search_json(
    visit: Viewer, where: Where, like: _Like = "", upload: _Upload = ""
) -> SearchAnswer:
    """Find the sightings most similar to a stored one or an uploaded image."""
    return _search(visit, where, like, upload)


class _InMemory(MultiPartParser):
    """Keeps every upload in memory: nothing is written to any folder."""

    spool_max_size = MAX_BODY


@router.post("/upload", tags=["search"], responses={303: {"description": "to the search page"}})
async def upload(request: Request, visit: Viewer) -> Response:
    """Upload an image (form field `image`) to search with; it is kept in memory only."""
    try:
        form = await _InMemory(request.headers, request.stream(), max_files=1, max_fields=5).parse()
    except (MultiPartException, KeyError) as error:
        raise InputError("the upload contained no file; try again") from error
    try:
        visit.site.guard.check_change(request, str(form.get("csrf", "")))
        file = form.get("image")
        if file is None or isinstance(file, str) or not file.size:
            raise InputError("no image chosen; choose a JPEG or PNG of one person")
        name, content = file.filename or "upload", await file.read()
    finally:
        await form.close()
    key, digest = await run_in_threadpool(visit.site.keep_upload, visit.by.who, name, content)
    await run_in_threadpool(visit.record, "upload", query=[digest])
    if visit.wants_json:
        return JSONResponse({"upload": key})
    return lead_to(f"/search?upload={key}")


@router.get("/image/{key}", include_in_schema=False)
def image(visit: Viewer, key: str) -> Response:
    """Return the stored crop of a sighting."""
    content = visit.site.gallery.image(key)
    if not visit.site.was_shown(visit.by.who, key):
        visit.record("picture", shown=[key])
    return _picture(content)


@router.get("/upload/{key}", include_in_schema=False)
def uploaded(visit: Viewer, key: str) -> Response:
    """Return an uploaded image while it is in memory."""
    return _picture(visit.site.upload(visit.by.who, key).image)


def _picture(content: bytes) -> Response:
    from resight.gallery.crops import image_type

    return Response(content, media_type=image_type(content))


def _search(visit: Visit, where: Conditions, like: str, upload: str) -> SearchAnswer:
    gallery = visit.site.gallery
    view = gallery.view
    query, name, own, asked = None, "", "", like
    if like:
        if like not in view.rows:
            raise RefusedError(404, "this sighting is not in the gallery; it may have been removed")
        query = sighting(view, view.rows[like])
        name, own = query.source, query.camera
        hits = gallery.search_like(like, where.k, where.filter(own))
    elif upload:
        kept = visit.site.upload(visit.by.who, upload)
        name, asked = kept.name, kept.digest
        hits = gallery.search_described(kept.described, where.k, where.filter())[0]
    else:
        raise InputError("nothing to search for; pick a sighting or upload an image")
    filters = {k: value for k, value in where.values().items() if k not in ("k", "person")}
    visit.record(
        "search",
        query=[asked],
        shown=[hit.id for hit in hits],
        persons=where.person,
        filters=filters,
    )
    return SearchAnswer(
        like=like,
        upload=upload,
        name=name,
        query=query,
        hits=[found(hit) for hit in hits],
        presence=presence(hits),
        widen=[] if hits else _widen(where, own, like, upload),
        model=view.manifest.current.fingerprint,
    )


def _widen(where: Conditions, own: str, like: str, upload: str) -> list[Widening]:
    """Offer to drop each condition in turn."""
    from dataclasses import replace

    drops: dict[str, dict[str, Any]] = {
        "any camera": {"camera": (), "others": False} if where.camera or where.others else {},
        "any time": {"after": "", "before": ""} if where.after or where.before else {},
        "any person": {"person": ()} if where.person else {},
    }
    return [
        Widening(
            words=words,
            address=replace(where, **changes).address("/search", like=like, upload=upload),
        )
        for words, changes in drops.items()
        if changes
    ]
