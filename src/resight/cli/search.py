"""``resight search``: find a person's other sightings in a gallery."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from resight.cli import _common as common
from resight.cli._common import flag, open_gallery, option, print_json, verb

if TYPE_CHECKING:
    from resight.gallery import Gallery, Hits
    from resight.gallery.reranking import Rerank

app = verb("Find the sightings in a gallery that look most like a person.")
SCHEMA = "resight.search/2"  # 1 had presence.likely, and learned distances only
_RERANK = (
    "Re-rank the first 500 results of each image: k-reciprocal, cross-view (two or more images), "
    "ssm or ol-mans (labelled people); post-processing that uses the gallery"
)


@app.command()
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
    import time
    from hashlib import sha256

    from resight.gallery import Filter
    from resight.gallery.log import operator
    from resight.gallery.reranking import NOTE, method_named
    from resight.times import parse

    start, end = (None if text is None else parse(text) for text in (after, before))
    cameras, others = tuple(camera or ()), tuple(exclude_camera or ())
    where = Filter(cameras, others, start, end, tuple(person or ()))
    opened, begin = open_gallery(gallery, ctx, cluster), time.time()
    method = None if rerank is None else method_named(rerank)
    if (features is None) == (not images):
        raise typer.BadParameter("give images or --features FILE, and not both")
    paths = images or []
    ways: dict[str, Any] = {"rerank": method, "together": together, "by_track": by_track}
    ways |= {"same_pictures": same_pictures}
    if features is None:
        found = opened.search_many(paths, top, where, **ways)
        contents = [path.read_bytes() for path in paths]
    else:
        from resight.features.vectors import load_vectors

        vectors, rows = load_vectors(features, needs=())
        paths = [Path(path) for path in rows.paths.tolist()]
        described = opened.own_vectors(vectors.features)
        found = opened.search_described(described, top, where, **ways)
        contents = [row.tobytes() for row in vectors.features]
    queries = [paths] if together else [[path] for path in paths]
    answers = list(zip(queries, found, strict=True))
    filters = {name: value for name, value in asdict(where).items() if value and name != "persons"}
    opened.record(
        operator(purpose=purpose),
        "search",
        begin=begin,
        query=[f"sha256:{sha256(content).hexdigest()}" for content in contents],
        shown=sorted({hit.id for hits in found for hit in hits}),
        persons=where.persons,
        filters=filters,
    )
    if html is not None:
        common.write(html, _page(opened, answers, method))
    if json:
        print_json(_document(opened, answers, method))
    elif html is None:
        if method is not None:
            print(f"re-ranked by {method}: {NOTE}")
        for paths, hits in answers:
            _print_table(_name(paths), hits, where)


def _document(
    gallery: Gallery, answers: list[tuple[list[Path], Hits]], method: Rerank | None
) -> dict[str, Any]:
    from resight.gallery.reranking import CANDIDATES, NOTE

    marked = {"method": method, "candidates": CANDIDATES, "note": NOTE}
    return {
        "schema": SCHEMA,
        "gallery": gallery.uri,
        "model": gallery.view.manifest.current.fingerprint,
        "reranking": None if method is None else marked,
        "queries": [
            {
                "image": str(paths[0]),
                "images": [str(path) for path in paths],
                "presence": None if hits.presence is None else asdict(hits.presence),
                "note": hits.note,
                "missing": hits.missing,
                "hits": [asdict(hit) for hit in hits],
                "same_pictures": [asdict(hit) for hit in hits.same_pictures],
            }
            for paths, hits in answers
        ],
    }


def _name(paths: list[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _print_table(name: str, hits: Hits, where: Any) -> None:
    from resight.times import show

    if hits.missing:
        print(f"{name}: INCOMPLETE: {hits.missing}")
    for hit in hits.same_pictures:
        print(f"{name}: this very picture is stored, at {hit.camera}: {hit.id} / {hit.source}")
    if not hits:
        ways = " or ".join(words for words, _ in where.widened())
        print(f"{name}: nothing found" + (f"; widen the search: {ways}" if ways else ""))
        return
    was = f"  {'was':>4}" if hits[0].rank_before is not None else ""
    print(f"{name}: {_heading(hits)}" if hits.presence or hits.note else name)
    print(
        f"{'rank':>4}{was}  {'distance':>9}  {'same':>5}  {'camera':<14} {'time':<19} "
        "person / id / file"
    )
    for hit in hits:
        same = "-" if hit.probability is None else f"{100 * hit.probability:.0f}%"
        was = f"  {hit.rank_before:>4}" if hit.rank_before is not None else ""
        mark = " (trained the model)" if hit.trained else ""
        # The model was fitted to make that distance small: it says nothing.
        distance = "-" if hit.trained else f"{hit.distance:.4g}"
        print(
            f"{hit.rank:>4}{was}  {distance:>9}  {same:>5}  {hit.camera:<14} "
            f"{show(hit.time):<19} {hit.person or 'unknown'} / {hit.id} / {hit.source}{mark}"
        )


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


def _page(gallery: Gallery, answers: list[tuple[list[Path], Hits]], method: Rerank | None) -> str:
    """Return one self-contained page: images are inside."""
    from resight.gallery.crops import NO_IMAGE, read
    from resight.gallery.reranking import NOTE
    from resight.web.rendering import render_results

    image = read if gallery.model.descriptors else lambda path: NO_IMAGE
    queries = [(_name(paths), image(paths[0]), hits) for paths, hits in answers]
    mark = "" if method is None else f"Re-ranked by {method}: {NOTE}."
    mark += "".join(f" Incomplete: {hits.missing}." for _, hits in answers[:1] if hits.missing)
    return render_results(gallery.uri, queries, gallery.image, mark)
