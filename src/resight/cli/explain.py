"""``resight explain``: which strips, colours and textures make two sightings look alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from resight.cli._common import Json, answer, open_gallery, option, write

if TYPE_CHECKING:
    from resight.explanation import Explanation


def explain(
    model: str = typer.Argument(help="Model folder or gallery"),
    image_a: Path = typer.Argument(help="Crop of a person or thing"),
    image_b: Path = typer.Argument(help="Another crop"),
    html: Path | None = option(None, "FILE", "Write an HTML page", "print a table"),
    json: Json = False,
) -> None:
    """Break down the learned distance of two sightings by strip and channel.

    With a gallery, each part is compared with its typical value between different people there.
    With a model only, there is nobody to compare with: shares of the distance are shown.
    """
    from resight.explanation import Explainer
    from resight.models.model import Model
    from resight.saving import MANIFEST

    if "://" not in model and (Path(model) / MANIFEST).is_file():
        explainer = Explainer(Model.load(model))
    else:
        explainer = open_gallery(model).explainer()
    found = explainer.explain(image_a, image_b)
    answer(json, found.to_dict(), _table(found))
    if html is not None:
        from resight.explanation.drawing import draw_page, picture
        from resight.images import read

        # Folders above a file often name its camera and person.
        pictures = (picture(read(p), "/".join(p.parts[-3:])) for p in (image_a, image_b))
        write(html, draw_page(found.to_dict(), *pictures))


def _table(found: Explanation) -> str:
    from resight.explanation.explanation import alike, percent

    lines = [found.summary, ""]
    unit = "" if found.usual is None else "alike"
    for title, shares in (("strip, from the top", found.bands), ("channel", found.channels)):
        width = max(len(title), *(len(share.label) for share in shares))
        lines.append(f"{title:<{width}}  share  {unit}".rstrip())
        for share in shares:
            told = ""
            if share.level is not None:
                told = f"{percent(alike(share.level)):>6} {share.verdict}"
            lines.append(f"{share.label:<{width}}  {percent(share.share):>5}  {told}".rstrip())
        lines.append("")
    lines.append(f"distance {found.distance:.5g}, method: {found.method}. {found.method_in_words}")
    return "\n".join(lines)
