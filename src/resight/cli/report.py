"""``resight report``: write the HTML report of a result, or show the card of a model."""

from __future__ import annotations

from pathlib import Path

import typer

from resight.cli._common import Root, option, say
from resight.errors import StoreError


def report(
    result: Path = typer.Argument(help="Folder of a result, or of a model"),
    data: str | None = option(None, "DATA", "Evaluated data, for images", "none"),
    root: Root = None,
    out: Path | None = option(None, "FILE", "HTML file", "report.html in RESULT"),
) -> None:
    """Write one self-contained page: figures, curves, ranked lists (worst first).

    Of a model: print its card, which says what it was learned from, and its limits.
    """
    from jinja2 import TemplateError

    from resight import datasets
    from resight.report import write
    from resight.report.result_files import read_result
    from resight.saving import MANIFEST

    if (result / MANIFEST).is_file():
        from resight.models.model import Model

        card = Model.load(result).card
        if not card:
            raise StoreError(f"the model {result} has no card: it was fitted by an earlier version")
        print(card.rstrip())
        return
    document = read_result(result)
    sightings = None if data is None else datasets.load(data, root=root)
    rankings = result / "rankings.csv" if sightings is not None else None
    page = out or result / "report.html"
    try:
        write(page, document, sightings, rankings, f"resight report {result}")
    except (KeyError, TypeError, AttributeError, IndexError, TemplateError) as error:
        raise StoreError(
            f"{result / 'result.json'} is damaged ({error!r}); evaluate again"
        ) from error
    if sightings is None:
        say("the report has no images; give --data to include them")
    print(page)
