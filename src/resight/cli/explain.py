"""``resight explain``: tell which strips, colours and textures make two sightings alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.explanation import Explainer, Explanation

app = verb("Tell which strips, colours and textures make two sightings alike or different.")


@app.command()
def explain(
    model: Annotated[str, typer.Argument(help="folder of a model, or a gallery")],
    image_a: Annotated[Path, typer.Argument(help="crop of a person")],
    image_b: Annotated[Path, typer.Argument(help="another crop")],
    html: Annotated[Path | None, typer.Option(help="write a page with the two crops")] = None,
    json: Annotated[bool, typer.Option("--json", help="print one JSON document")] = False,
) -> None:
    """Divide the learned distance of two sightings among strips and channels.

    With a gallery, each part is compared with what is usual between different people there.
    With a model alone, shares of the distance are compared with those of training sightings.
    """
    from resight._files import atomic_write

    explainer = _explainer(model)
    found = explainer.explain(image_a, image_b)
    if json:
        print_json(found.to_dict())
    else:
        print(_table(found))
    if html is not None:
        from resight.explanation.drawing import draw_page, picture
        from resight.images import read

        pictures = (picture(read(path), _caption(path)) for path in (image_a, image_b))
        with atomic_write(html, "w") as stream:
            stream.write(draw_page(found.to_dict(), *pictures))
        say(f"written: {html}")


def _explainer(place: str) -> Explainer:
    import resight
    from resight.explanation import Explainer
    from resight.saving import MANIFEST

    if "://" in place or not (Path(place) / MANIFEST).is_file():
        from resight.gallery import Gallery
        from resight.gallery.references import gallery_explainer

        gallery = Gallery.open(place)
        try:
            return gallery_explainer(gallery)
        finally:
            gallery.close()
    return Explainer(resight.load(place))


def _caption(path: Path) -> str:
    return "/".join(path.parts[-3:])  # camera and person, where folders tell them


def _table(found: Explanation) -> str:
    from resight.explanation.explanation import percent

    lines = [found.summary, ""]
    for title, shares in (("strip, from the top", found.bands), ("channel", found.channels)):
        width = max(len(title), *(len(share.label) for share in shares))
        lines.append(
            f"{title:<{width}}  share  {'of the usual' if found.compared else ''}".rstrip()
        )
        for share in shares:
            level = "" if share.level is None else f"{percent(share.level):>6} {share.verdict}"
            lines.append(f"{share.label:<{width}}  {percent(share.share):>5}  {level}".rstrip())
        lines.append("")
    lines.append(f"distance {found.distance:.5g}, method: {found.method}. {found.method_in_words}")
    return "\n".join(lines)
