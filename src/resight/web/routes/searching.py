"""Finding somebody: pick a sighting or upload images, search, and why a result looks alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from resight.errors import InputError
from resight.explanation.drawing import Picture, draw
from resight.gallery import Described, Hits
from resight.gallery.crops import image_type
from resight.gallery.sharing import Steps
from resight.gallery.view import View
from resight.images import read
from resight.times import EPOCH
from resight.web import answers, visiting
from resight.web.answers import Asked, Explained, Found, Sighting, Widening, sighting
from resight.web.security import MAX_BODY
from resight.web.site import Upload
from resight.web.visiting import Conditions, Names, Page, Viewer, Visit, Where, twins

router = APIRouter()

_Camera = Annotated[str, Query(description="only this camera")]
_Known = Annotated[str, Query(description="yes: labelled, no: unknown, empty: all")]
_Track = Annotated[str, Query(description="only the track of this sighting")]
_Like = Annotated[Names, Query(description="ids of stored sightings of one person")]
_Upload = Annotated[Names, Query(description="keys returned by POST /upload")]
_PER_PAGE = 48
MAX_IMAGES = 16  # that make one query


@twins(router, "/", answers.BrowseAnswer, "gallery")
def index(
    visit: Viewer, camera: _Camera = "", known: _Known = "", track: _Track = "", page: Page = 1
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
    page, pages = answers.place(page, len(rows), _PER_PAGE)
    shown = rows[(page - 1) * _PER_PAGE : page * _PER_PAGE]
    filters = {"camera": camera, "known": known, "page": page}
    visit.record("browse", shown=view.table.ids[shown].tolist(), filters=filters)
    sightings = [sighting(view, row) for row in shown.tolist()]
    answer = answers.BrowseAnswer(
        sightings=sightings, total=len(rows), page=page, pages=pages, cameras=view.cameras
    )
    return visit.answer("browse.html", answer, camera=camera, known=known, track=track)


@router.get("/info.json", tags=["gallery"])
def info_json(visit: Viewer) -> dict[str, Any]:
    """Summarise the gallery; `csrf` is the token that changes in this session need."""
    return {**visit.site.gallery.info(), "csrf": visit.csrf}


@router.get("/openapi.json", include_in_schema=False)
def openapi_json(visit: Viewer) -> dict[str, Any]:
    """Describe the API."""
    return answers.add_examples(dict(visit.request.app.openapi()))


@twins(router, "/search", answers.SearchAnswer, "search")
async def search(visit: Viewer, where: Where, like: _Like = (), upload: _Upload = ()) -> Any:
    """Find the tracks most similar to stored sightings or uploaded images, taken together."""
    steps = _searched(visit, where, like, upload)
    return await visit.site.batches.answer(steps, slow=len(like) + len(upload) > 1)


def _searched(visit: Visit, where: Conditions, like: Names, upload: Names) -> Steps[Any]:
    view = visit.site.gallery.view
    stored = [visit.stored(key, view) for key in dict.fromkeys(like)]
    kept = {key: visit.site.upload(visit.by.who, key) for key in upload}
    if not stored and not kept:
        raise InputError("nothing to search for; pick a sighting or upload an image")
    if len(stored) + len(kept) > MAX_IMAGES:
        raise InputError(f"{len(stored) + len(kept)} images; at most {MAX_IMAGES} make one query")
    hits, wrong = Hits(), dict[str, str]()
    try:
        view, hits = yield from _found(visit, view, where, stored, [*kept.values()])
    except visiting.FieldError as error:  # the page says it beside the field
        if visit.by_twin:
            raise
        wrong = {error.field: str(error)}
    asked: dict[str, Any] = {"like": like, "upload": upload}
    wider = [] if hits or wrong else where.wider(**asked)
    images = [Asked(image=f"/image/{one.id}", name=one.camera, id=one.id) for one in stored]
    images += [Asked(image=f"/upload/{k}", name=one.name, upload=k) for k, one in kept.items()]
    first = stored[0] if stored else None
    answer = answers.SearchAnswer(
        like=first.id if first else "",
        upload="" if first else images[0].upload,
        name=first.source if first else images[0].name,
        query=first,
        asked=images,
        hits=_answered(view, hits, first),
        same_pictures=[*hits.same_pictures],
        presence=hits.presence,
        note=hits.note,
        missing=hits.missing,
        widen=[Widening(words=words, address=address) for words, address in wider],
        model=view.manifest.current.fingerprint,
    )
    if visit.by_twin:  # written here: the thread that listens has other things to do
        return Response(answer.model_dump_json(), media_type="application/json")
    values: dict[str, Any] = {"where": where, "asked": asked, "cameras": view.cameras}
    values["dated"] = view.newest >= EPOCH
    status = 422 if wrong and not visit.by_htmx else 200
    return visit.answer("search.html", answer, status=status, wrong=wrong, **values)


def _found(
    visit: Visit, view: View, where: Conditions, stored: Sequence[Sighting], kept: Sequence[Upload]
) -> Steps[tuple[View, Hits]]:
    gallery, like = visit.site.gallery, [one.id for one in stored]
    parts = [gallery.features(like)] if like else []
    parts += [one.described for one in kept]
    described = Described(np.concatenate([one.features for one in parts]), parts[0].fingerprint)
    chosen = where.filter(view.cameras, stored[0].camera if stored else "")
    how: dict[str, Any] = {"together": True, "by_track": not where.single}
    view, [hits] = yield from gallery.search_steps(described, where.k, chosen, like=like, **how)
    filters = {k: value for k, value in where.values().items() if k not in ("k", "person")}
    query, shown = [*like, *(one.digest for one in kept)], [hit.id for hit in hits]
    facts: dict[str, Any] = {"query": query, "persons": where.person, "filters": filters}
    yield gallery.recording(visit.by, "search", begin=visit.begin, shown=shown, **facts)
    visit.site.has_seen(visit.by.who, shown)
    return view, hits


def _answered(view: View, hits: Hits, query: Sighting | None) -> list[Found]:
    """Add to hits what was said of them and the query, and the sizes of their tracks."""
    said = answers.answers_about(view.labels, query.id) if query else {}
    sizes = view.track_sizes[view.tracks[[view.rows[hit.id] for hit in hits]]]
    found = []
    for hit, size in zip(hits, sizes.tolist(), strict=True):
        verdict, key = said.get(hit.id, (hit.verdict, ""))
        found.append(Found(**vars(hit) | {"verdict": verdict}, sightings=size, answer=key))
    return found


@router.post("/upload", tags=["search"], responses={303: {"description": "to the search page"}})
async def upload(visit: Viewer) -> Any:
    """Upload images of one person (form field `image`) to search with; kept in memory only."""
    images: list[tuple[str, bytes]] = []

    def take(name: str, file: Any) -> None:
        if file.field_name == b"image" and file.size:
            images.append((name or "upload", file.file_object.getvalue()))

    await visiting.read_form(visit, take, MAX_MEMORY_FILE_SIZE=MAX_BODY)  # none to the disk
    if not images:
        raise InputError("no image chosen; choose a JPEG or PNG of one person")
    if len(images) > MAX_IMAGES:
        raise InputError(f"{len(images)} images; at most {MAX_IMAGES} make one query")
    keys = []
    for name, content in images:
        key, digest = await run_in_threadpool(visit.site.keep_upload, visit.by.who, name, content)
        await run_in_threadpool(visit.record, "upload", query=[digest])
        keys.append(key)
    address = f"/search?{urlencode({'upload': keys}, doseq=True)}"
    return visit.done({"upload": keys[0], "uploads": keys}, address)


@router.get("/image/{key}", include_in_schema=False)
def image(visit: Viewer, key: str) -> Response:
    """Return the stored crop of a sighting."""
    content = visit.site.gallery.image(key)
    if not visit.site.was_shown(visit.by.who, key):
        visit.record("picture", shown=[key])
    return Response(content, media_type=image_type(content))


@router.get("/upload/{key}", include_in_schema=False)
def uploaded(visit: Viewer, key: str) -> Response:
    """Return an uploaded image while it is in memory."""
    content = visit.site.upload(visit.by.who, key).image
    return Response(content, media_type=image_type(content))


# ---- why two sightings look alike


@twins(router, "/why", Explained, "search")
def why(
    visit: Viewer,
    hit: Annotated[str, Query(description="id of the stored sighting to compare with")],
    like: Annotated[str, Query(description="id of a stored sighting")] = "",
    upload: Annotated[str, Query(description="key returned by POST /upload, instead")] = "",
) -> Any:
    """Break down the distance of two sightings by strip, colour and texture."""
    gallery, second = visit.site.gallery, visit.stored(hit)
    query: Sighting | None = None
    if like:
        query, asked, first = visit.stored(like), like, gallery.features([like])
        picture, source, caption = gallery.image(like), f"/image/{like}", query.camera
    elif upload:
        kept = visit.site.upload(visit.by.who, upload)
        asked, first = kept.digest, kept.described
        picture, source, caption = kept.image, f"/upload/{upload}", kept.name
    else:
        raise InputError("nothing to compare with; give `like` or `upload`")
    pictures = [picture, gallery.image(hit)]
    found = visit.site.explainer().explain_features(
        np.concatenate([first.features, gallery.features([hit]).features]),
        lambda: [read(content) for content in pictures],
    )
    visit.record("why", query=[asked], shown=[hit])
    answer = Explained(
        like=like,
        upload=upload,
        query=query,
        hit=second,
        model=gallery.view.manifest.current.fingerprint,
        explanation=found.to_dict(),
    )
    if visit.by_twin:
        return answer
    drawn = [_drawn(pictures[0], source, caption)]
    drawn.append(_drawn(pictures[1], f"/image/{hit}", second.camera))
    verdict, key = answers.said_of(gallery.view.labels, like, hit) if like else (None, "")
    values: dict[str, Any] = {"first": drawn[0], "verdict": verdict, "key": key}
    return visit.page("why.html", answer=answer, part=draw(answer.explanation, *drawn), **values)


def _drawn(content: bytes, source: str, caption: str) -> Picture:
    height, width = read(content, caption).shape[:2]
    return Picture(source, width, height, caption)
