"""``resight search``: find a person's other sightings in a gallery."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.gallery import Gallery, Hits
    from resight.gallery.reranking import Rerank

app = verb("Find the sightings in a gallery that look most like a person.")
SCHEMA = "resight.search/1"


@app.command()
def search(
    gallery: Annotated[str, typer.Argument(help="a folder or postgresql://...#name")],
    images: Annotated[list[Path], typer.Argument(help="one crop of a person each")],
    k: Annotated[int, typer.Option("-k", help="how many results", min=1)] = 20,
    camera: Annotated[list[str] | None, typer.Option(help="only this camera (repeatable)")] = None,
    exclude_camera: Annotated[
        list[str] | None, typer.Option(help="not this camera (repeatable)")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="TIME", help="seconds, h:mm:ss or 2024-05-31T14:00")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="TIME", help="as --after")] = None,
    person: Annotated[
        list[str] | None, typer.Option(help="only sightings labelled so (repeatable)")
    ] = None,
    rerank: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="k-reciprocal or cross-view (two images or more): put the first 500 results of "
            "each image in another order; post-processing that uses the gallery",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a page with thumbnails")
    ] = None,
) -> None:
    """Rank a gallery's sightings by how much they look like each image."""
    from resight.gallery import Filter, Gallery
    from resight.gallery.reranking import NOTE, method_named
    from resight.times import parse

    where = Filter(
        tuple(camera or ()),
        tuple(exclude_camera or ()),
        None if after is None else parse(after),
        None if before is None else parse(before),
        tuple(person or ()),
    )
    opened = Gallery.open(gallery)
    method = None if rerank is None else method_named(rerank)
    found = opened.search_many(images, k, where, rerank=method)
    answers = list(zip(images, found, strict=True))
    if html is not None:
        _write_page(html, opened, answers, method)
        say(f"wrote {html}")
    if json:
        print_json(_document(opened, answers, method))
    elif html is None:
        if method is not None:
            print(f"re-ranked by {method}: {NOTE}")
        for path, hits in answers:
            _print_table(path, hits, where)


def _document(
    gallery: Gallery, answers: list[tuple[Path, Hits]], method: Rerank | None
) -> dict[str, Any]:
    from resight.gallery.reranking import CANDIDATES, NOTE

    marked = None
    if method is not None:
        marked = {"method": method, "candidates": CANDIDATES, "note": NOTE}
    return {
        "schema": SCHEMA,
        "gallery": gallery.uri,
        "model": gallery.model.fingerprint,
        "reranking": marked,
        "queries": [
            {
                "image": str(path),
                "presence": None if hits.presence is None else asdict(hits.presence),
                "hits": [asdict(hit) for hit in hits],
            }
            for path, hits in answers
        ],
    }


def _print_table(path: Path, hits: Hits, where: Any) -> None:
    from resight.times import show

    if not hits:
        ways = " or ".join(words for words, _ in where.widened())
        print(f"{path}: nothing found" + (f"; widen the search: {ways}" if ways else ""))
        return
    calibrated = hits[0].probability is not None
    was = f"  {'was':>4}" if hits[0].rank_before is not None else ""
    print(f"{path}" if hits.presence is None else f"{path}: {hits.presence.words}")
    print(
        f"{'rank':>4}{was}  {'distance':>9}  {'same':>5}  {'camera':<14} {'time':<19} person / id"
    )
    for hit in hits:
        same = (
            f"{100 * hit.probability:.0f}%" if calibrated and hit.probability is not None else "-"
        )
        was = f"  {hit.rank_before:>4}" if hit.rank_before is not None else ""
        print(
            f"{hit.rank:>4}{was}  {hit.distance:>9.4g}  {same:>5}  {hit.camera:<14} "
            f"{show(hit.time):<19} {hit.person or 'unknown'} / {hit.id}"
        )


def _write_page(
    file: Path, gallery: Gallery, answers: list[tuple[Path, Hits]], method: Rerank | None
) -> None:
    """Write one self-contained file: images are inside."""
    from resight._files import atomic_write
    from resight.gallery.crops import read
    from resight.gallery.reranking import NOTE
    from resight.web.rendering import render_results

    queries = [(str(path), read(path), hits) for path, hits in answers]
    mark = "" if method is None else f"Re-ranked by {method}: {NOTE}."
    page = render_results(gallery.uri, queries, gallery.image, mark)
    with atomic_write(file, "w") as stream:
        stream.write(page)
