"""Searching: by a stored sighting or an uploaded image; filters are part of the URL."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.formparsers import MultiPartException, MultiPartParser

from resight.errors import InputError
from resight.web.answers import Found, PresenceAnswer, SearchAnswer, Widening
from resight.web.security import MAX_BODY
from resight.web.visiting import Conditions, Viewer, Where, lead_to

router = APIRouter()

_Like = Annotated[str, Query(description="id of a stored sighting")]
_Upload = Annotated[str, Query(description="key returned by POST /upload")]


@router.get("/search", response_class=HTMLResponse, include_in_schema=False)
def search(visit: Viewer, where: Where, like: _Like = "", upload: _Upload = "") -> HTMLResponse:
    """Show the sightings most similar to the query."""
    answer = search_json(visit, where, like, upload)
    cameras = visit.site.gallery.view.cameras
    return visit.page("search.html", answer=answer, where=where, cameras=cameras)


@router.get("/search.json", response_model=SearchAnswer, tags=["search"])
def search_json(
    visit: Viewer, where: Where, like: _Like = "", upload: _Upload = ""
) -> SearchAnswer:
    """Find the sightings most similar to a stored one or an uploaded image."""
    gallery = visit.site.gallery
    model = gallery.view.manifest.current.fingerprint
    query, own = None, ""
    if like:
        query = visit.stored(like)
        asked, name, own = like, query.source, query.camera
        hits = gallery.search_like(like, where.k, where.filter(own))
    elif upload:
        kept = visit.site.upload(visit.by.who, upload)
        asked, name = kept.digest, kept.name
        hits = gallery.search_described(kept.described, where.k, where.filter())[0]
    else:
        raise InputError("nothing to search for; pick a sighting or upload an image")
    filters = {k: value for k, value in where.values().items() if k not in ("k", "person")}
    shown = [hit.id for hit in hits]
    visit.record("search", query=[asked], shown=shown, persons=where.person, filters=filters)
    return SearchAnswer(
        like=like,
        upload=upload,
        name=name,
        query=query,
        hits=[Found.model_validate(hit) for hit in hits],
        presence=PresenceAnswer.model_validate(hits.presence) if hits.presence else None,
        note=hits.note,
        same_pictures=[Found.model_validate(hit) for hit in hits.same_pictures],
        widen=[] if hits else _widen(where, like, upload),
        model=model,
    )


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


def _widen(where: Conditions, like: str, upload: str) -> list[Widening]:
    """Offer to drop each condition in turn."""
    drops: dict[str, dict[str, Any]] = {
        "any camera": {"camera": (), "others": False},
        "any time": {"after": "", "before": ""},
        "any person": {"person": ()},
    }
    ways = [(words, replace(where, **drop)) for words, drop in drops.items()]
    return [
        Widening(words=words, address=wider.address("/search", like=like, upload=upload))
        for words, wider in ways
        if wider != where
    ]
