"""Explanations: which strips, colours and textures make a result look like the query."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from resight.errors import InputError
from resight.explanation.drawing import Picture, draw
from resight.images import read
from resight.web.answers import Explained, Sighting, said_of
from resight.web.visiting import Viewer, Visit, twins

router = APIRouter()

_Like = Annotated[str, Query(description="id of a stored sighting")]
_Upload = Annotated[str, Query(description="key returned by POST /upload, instead of `like`")]
_Hit = Annotated[str, Query(description="id of the stored sighting to compare with")]


@twins(router, "/why", Explained, "search")
def why(visit: Viewer, hit: _Hit, like: _Like = "", upload: _Upload = "") -> Any:
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
    first = _picture(visit, answer.query, answer.upload)
    part = draw(answer.explanation, first, _picture(visit, answer.hit, ""))
    verdict, key = None, ""
    if answer.like:
        verdict, key = said_of(visit.site.gallery.view.labels, answer.like, answer.hit.id)
    values: dict[str, Any] = {"part": part, "first": first, "verdict": verdict, "key": key}
    return visit.page("why.html", answer=answer, **values)


def _picture(visit: Visit, one: Sighting | None, upload: str) -> Picture:
    if one is None:
        kept = visit.site.upload(visit.by.who, upload)
        content, source, caption = kept.image, f"/upload/{upload}", kept.name
    else:
        content, source, caption = visit.site.gallery.image(one.id), one.image, one.camera
    height, width = read(content, caption).shape[:2]
    return Picture(source, width, height, caption)
