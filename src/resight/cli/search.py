"""``resight search``: find a person's other sightings in a gallery."""

from __future__ import annotations

import time
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from resight.cli import _common as common
from resight.cli._common import flag, open_gallery, option

if TYPE_CHECKING:
    from resight.gallery import Filter, Gallery, Hits

SCHEMA = "resight.search/2"  # 1 had presence.likely, and learned distances only
_RERANK = (
    "Re-rank the first 500 results of each image: k-reciprocal, cross-view (two or more images) "
    "or ol-mans (labelled people); post-processing that uses the gallery"
)


def search(
    ctx: typer.Context,
    gallery: common.GalleryPlace,
    images: list[Path] | None = typer.Argument(
        None, help="Crops, each of one person or thing", show_default="none, with --features"
    ),
    features: Path | None = option(
        None, "FILE", "Your own vectors (.npy, .csv, .mat), each a query", "describe images"
    ),
    top: int = option(20, "N", "Number of results", True, "-k", "--top", min=1),
    camera: list[str] | None = option(None, "NAME", "Only this camera (repeatable)", "all"),
    exclude_camera: list[str] | None = option(None, "NAME", "Not this camera (repeatable)", "none"),
    after: str | None = option(
        None, "TIME", "Only later: seconds, h:mm:ss or 2024-05-31T14:00", "any time"
    ),
    before: str | None = option(None, "TIME", "Only earlier", "any time"),
    person: list[str] | None = option(None, "NAME", "Only this person (repeatable)", "all"),
    rerank: str | None = option(None, "METHOD", _RERANK, "none"),
    together: bool = flag("--together", "The images show one person: search once for all of them"),
    by_track: bool = flag("--by-track", "One result per track, by its mean distance"),
    same_pictures: bool = flag("--same-pictures", "Also rank stored copies of the query image"),
    cluster: common.Cluster = None,
    json: common.Json = False,
    html: Path | None = option(None, "FILE", "Write an HTML page", "print a table"),
    purpose: common.Purpose = "",
) -> None:
    """Rank a gallery's sightings by how similar they are to each image or vector."""
    from resight.gallery import Filter
    from resight.gallery.log import operator
    from resight.gallery.reranking import CANDIDATES, NOTE
    from resight.times import parse

    start, end = (None if text is None else parse(text) for text in (after, before))
    cameras, others = tuple(camera or ()), tuple(exclude_camera or ())
    where = Filter(cameras, others, start, end, tuple(person or ()))
    opened, begin = open_gallery(gallery, ctx, cluster), time.time()
    if (features is None) == (not images):
        raise typer.BadParameter("give images or --features FILE, and not both")
    paths = images or []
    ways: dict[str, Any] = {"rerank": rerank, "together": together, "by_track": by_track}
    ways |= {"same_pictures": same_pictures}
    if features is None:
        found = opened.search_many(paths, top, where, **ways)
        contents = [path.read_bytes() for path in paths]
    else:
        from resight.features.vectors import load_vectors

        vectors, rows = load_vectors(features, needs=())
        paths = [Path(path) for path in rows.paths.tolist()]
        found = opened.search_described(opened.own_vectors(vectors.features), top, where, **ways)
        contents = [row.tobytes() for row in vectors.features]
    answers = list(zip([paths] if together else [[one] for one in paths], found, strict=True))
    query = [f"sha256:{sha256(content).hexdigest()}" for content in contents]
    shown = sorted({hit.id for hits in found for hit in hits})
    filters = {name: value for name, value in asdict(where).items() if value and name != "persons"}
    facts: dict[str, Any] = {"query": query, "persons": where.persons, "filters": filters}
    opened.record(operator(purpose=purpose), "search", begin=begin, shown=shown, **facts)
    mark = "" if rerank is None else f"re-ranked by {rerank}: {NOTE}"
    if html is not None:
        common.write(html, _page(opened, answers, mark))
    if json or html is None:
        marked = {"method": rerank, "candidates": CANDIDATES, "note": NOTE}
        document = {
            "schema": SCHEMA,
            "gallery": opened.uri,
            "model": opened.view.manifest.current.fingerprint,
            "reranking": None if rerank is None else marked,
            "queries": [_document(*answer) for answer in answers],
        }
        tables = [mark] if mark else []
        tables += [_table(*one, where) for one in answers]
        common.answer(json, document, "\n".join(tables))


def _document(images: list[Path], hits: Hits) -> dict[str, Any]:
    return {
        "image": str(images[0]),
        "images": [str(path) for path in images],
        "presence": None if hits.presence is None else asdict(hits.presence),
        "note": hits.note,
        "missing": hits.missing,
        "hits": [asdict(hit) for hit in hits],
        "same_pictures": [asdict(hit) for hit in hits.same_pictures],
    }


def _name(images: list[Path]) -> str:
    return str(images[0]) + (f" and {len(images) - 1} more" if len(images) > 1 else "")


def _table(images: list[Path], hits: Hits, where: Filter) -> str:
    from resight.times import show

    name = _name(images)
    lines = [f"{name}: INCOMPLETE: {hits.missing}"] if hits.missing else []
    for hit in hits.same_pictures:
        stored = f"this very picture is stored, at {hit.camera}"
        lines.append(f"{name}: {stored}: {hit.id} / {hit.source}")
    if not hits:
        ways = " or ".join(where.widened())
        way_on = f"; widen the search: {ways}" if ways else ""
        return "\n".join([*lines, f"{name}: nothing found{way_on}"])
    reranked = hits[0].rank_before is not None
    lines.append(f"{name}: {_heading(hits)}" if hits.presence or hits.note else name)
    columns = f"{'distance':>9}  {'same':>5}  {'camera':<14} {'time':<19} person / id / file"
    lines.append(f"rank   was  {columns}" if reranked else f"rank  {columns}")
    for hit in hits:
        same = "-" if hit.probability is None else f"{100 * hit.probability:.0f}%"
        was = f"  {hit.rank_before:>4}" if reranked else ""
        mark = " (trained the model)" if hit.trained else ""
        # The model was fitted to make that distance small: it says nothing.
        distance = "-" if hit.trained else f"{hit.distance:.4g}"
        lines.append(
            f"{hit.rank:>4}{was}  {distance:>9}  {same:>5}  {hit.camera:<14} "
            f"{show(hit.time):<19} {hit.person or 'unknown'} / {hit.id} / {hit.source}{mark}"
        )
    return "\n".join(lines)


def _heading(hits: Hits) -> str:
    """Say the answer, why it is unsure, and how often such answers were right."""
    told = hits.presence
    if told is None:
        return hits.note
    words = told.words + (f": {told.why}" if told.why else "")
    if told.answer in told.measured:
        right = f"{100 * told.measured[told.answer]:.0f}%"
        words += f" (right in {right} of such answers about held-out people)"
    return f"{words}; {told.compared} sightings searched"


def _page(gallery: Gallery, answers: list[tuple[list[Path], Hits]], mark: str) -> str:
    """Return one self-contained page: images are inside; `mark` says what was done to the order."""
    from resight.gallery.crops import NO_IMAGE, keep, read
    from resight.images import read as decoded
    from resight.web.rendering import STATIC, data_uri, render

    queries = []
    for images, hits in answers:
        name = _name(images)
        content = read(images[0]) if gallery.model.descriptors else NO_IMAGE
        image = data_uri(keep(content, decoded(content, name), None)[0])
        found = [(hit, data_uri(gallery.image(hit.id))) for hit in hits]
        queries.append({"name": name, "image": image, "presence": hits.presence, "hits": found})
    missing = answers[0][1].missing
    mark = f"{mark[0].upper()}{mark[1:]}." if mark else ""
    mark += f" Incomplete: {missing}." if missing else ""
    style = (STATIC / "page.css").read_text(encoding="utf-8")
    return render("results.html", gallery=gallery.uri, queries=queries, mark=mark, style=style)
