"""Searching by stored sightings or uploaded images, and why a result looks like the query."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from starlette.formparsers import MultiPartException, MultiPartParser

from resight.errors import InputError
from resight.explanation.drawing import Picture, draw
from resight.gallery import Described, Hits
from resight.gallery.crops import image_type
from resight.images import read
from resight.times import EPOCH
from resight.web.answers import (
    Asked,
    Explained,
    Found,
    PresenceAnswer,
    SearchAnswer,
    Sighting,
    Widening,
    answers_about,
    said_of,
)
from resight.web.security import MAX_BODY
from resight.web.visiting import Conditions, FieldError, Names, Viewer, Visit, Where, twins

router = APIRouter()

_Like = Annotated[Names, Query(description="ids of stored sightings of one person")]
_Upload = Annotated[Names, Query(description="keys returned by POST /upload")]
MAX_IMAGES = 16  # that make one query


@twins(router, "/search", SearchAnswer, "search")
def search(visit: Viewer, where: Where, like: _Like = (), upload: _Upload = ()) -> Any:
    """Find the tracks most similar to stored sightings or uploaded images, taken together."""
    index = visit.site.gallery.view.index
    with nullcontext() if index is None else index.at_work():
        return _searched(visit, where, like, upload)


def _searched(visit: Visit, where: Conditions, like: Names, upload: Names) -> Any:
    question, hits = _question(visit, like, upload), Hits()
    wrong: dict[str, str] = {}
    try:
        hits = _found(visit, question, where)
    except FieldError as error:  # the page says it beside the field
        if visit.by_twin:
            raise
        wrong = {error.field: str(error)}
    asked = {"like": like, "upload": upload}
    answer = _answer(visit, question, hits, [] if hits or wrong else _widen(where, asked))
    view = visit.site.gallery.view
    dated = bool(len(view.table)) and float(np.nanmax(view.table.times, initial=0.0)) >= EPOCH
    values = {"where": where, "asked": asked, "cameras": view.cameras, "dated": dated}
    status = 422 if wrong and not visit.by_htmx else 200
    return visit.answer("search.html", answer, status=status, wrong=wrong, **values)


def _found(visit: Visit, question: _Question, where: Conditions) -> Hits:
    gallery = visit.site.gallery
    own = question.first.camera if question.first else ""
    hits = gallery.search_described(
        question.described,
        where.k,
        where.filter(gallery.view.cameras, own),
        like=question.like,
        together=True,
        by_track=not where.single,
    )[0]
    filters = {k: value for k, value in where.values().items() if k not in ("k", "person")}
    asked, shown = [*question.like, *question.digests], [hit.id for hit in hits]
    visit.record("search", query=asked, shown=shown, persons=where.person, filters=filters)
    return hits


@dataclass(frozen=True)
class _Question:
    """The images of a query, described."""

    like: list[str]
    asked: list[Asked]
    described: Described
    digests: list[str]
    first: Sighting | None


def _question(visit: Visit, like: Names, upload: Names) -> _Question:
    stored = [visit.stored(key) for key in dict.fromkeys(like)]
    kept = {key: visit.site.upload(visit.by.who, key) for key in upload}
    if not stored and not kept:
        raise InputError("nothing to search for; pick a sighting or upload an image")
    if len(stored) + len(kept) > MAX_IMAGES:
        raise InputError(f"{len(stored) + len(kept)} images; at most {MAX_IMAGES} make one query")
    ids = [one.id for one in stored]
    parts = [visit.site.gallery.features(ids)] if ids else []
    parts += [one.described for one in kept.values()]
    described = Described(np.concatenate([one.features for one in parts]), parts[0].fingerprint)
    asked = [Asked(image=one.image, name=one.camera, id=one.id) for one in stored]
    asked += [Asked(image=f"/upload/{k}", name=one.name, upload=k) for k, one in kept.items()]
    digests = [one.digest for one in kept.values()]
    return _Question(ids, asked, described, digests, stored[0] if stored else None)


def _answer(visit: Visit, question: _Question, hits: Hits, wider: list[Widening]) -> SearchAnswer:
    view, first = visit.site.gallery.view, question.first
    found = [Found.model_validate(hit) for hit in hits]
    said = answers_about(view.labels, first.id) if first else {}
    tracks = view.tracks[[view.rows[one.id] for one in found]]
    for one, count in zip(found, view.track_sizes[tracks].tolist(), strict=True):
        one.sightings = count
        one.verdict, one.answer = said.get(one.id, (one.verdict, ""))
    return SearchAnswer(
        like=first.id if first else "",
        upload="" if first else question.asked[0].upload,
        name=first.source if first else question.asked[0].name,
        query=first,
        asked=question.asked,
        hits=found,
        same_pictures=[Found.model_validate(hit) for hit in hits.same_pictures],
        presence=PresenceAnswer.model_validate(hits.presence) if hits.presence else None,
        note=hits.note,
        missing=hits.missing,
        widen=wider,
        model=view.manifest.current.fingerprint,
    )


class _InMemory(MultiPartParser):
    """Keeps every upload in memory: nothing is written to any folder."""

    spool_max_size = MAX_BODY


@router.post("/upload", tags=["search"], responses={303: {"description": "to the search page"}})
async def upload(request: Request, visit: Viewer) -> Any:
    """Upload images of one person (form field `image`) to search with; kept in memory only."""
    try:
        parser = _InMemory(request.headers, request.stream(), max_files=MAX_IMAGES, max_fields=5)
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise InputError("the upload contained no file; try again") from error
    try:
        visit.site.guard.check_change(request, str(form.get("csrf", "")))
        files = [one for one in form.getlist("image") if not isinstance(one, str) and one.size]
        if not files:
            raise InputError("no image chosen; choose a JPEG or PNG of one person")
        images = [(one.filename or "upload", await one.read()) for one in files]
    finally:
        await form.close()
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
    return _picture(content)


@router.get("/upload/{key}", include_in_schema=False)
def uploaded(visit: Viewer, key: str) -> Response:
    """Return an uploaded image while it is in memory."""
    return _picture(visit.site.upload(visit.by.who, key).image)


def _picture(content: bytes) -> Response:
    return Response(content, media_type=image_type(content))


def _widen(where: Conditions, asked: dict[str, Names]) -> list[Widening]:
    """Offer to drop each condition in turn."""
    drops: dict[str, dict[str, Any]] = {
        "any camera": {"camera": (), "others": False},
        "any time": {"after": "", "before": ""},
        "any person": {"person": ()},
    }
    ways = [(words, replace(where, **drop)) for words, drop in drops.items()]
    return [
        Widening(words=words, address=wider.address("/search", **asked))
        for words, wider in ways
        if wider != where
    ]


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
    elif upload:
        kept = visit.site.upload(visit.by.who, upload)
        asked, first = kept.digest, kept.described
    else:
        raise InputError("nothing to compare with; give `like` or `upload`")
    found = visit.site.explainer().explain_features(
        np.concatenate([first.features, gallery.features([hit]).features]),
        lambda: [
            read(kept.image if query is None else gallery.image(query.id)),
            read(gallery.image(hit)),
        ],
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
    return answer if visit.by_twin else _drawn(visit, answer)


def _drawn(visit: Visit, answer: Explained) -> HTMLResponse:
    """Show an explanation, drawn over the two crops."""
    first = _crop(visit, answer.query, answer.upload)
    part = draw(answer.explanation, first, _crop(visit, answer.hit, ""))
    verdict, key = None, ""
    if answer.like:
        verdict, key = said_of(visit.site.gallery.view.labels, answer.like, answer.hit.id)
    values: dict[str, Any] = {"part": part, "first": first, "verdict": verdict, "key": key}
    return visit.page("why.html", answer=answer, **values)


def _crop(visit: Visit, one: Sighting | None, upload: str) -> Picture:
    if one is None:
        kept = visit.site.upload(visit.by.who, upload)
        content, source, caption = kept.image, f"/upload/{upload}", kept.name
    else:
        content, source, caption = visit.site.gallery.image(one.id), one.image, one.camera
    height, width = read(content, caption).shape[:2]
    return Picture(source, width, height, caption)
