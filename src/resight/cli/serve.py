"""``resight serve``: open the search page of a gallery."""

from __future__ import annotations

from typing import Annotated

import typer

from resight.cli._common import say, verb

app = verb("Open the search page of a gallery.")


@app.command()
def serve(
    gallery: Annotated[str, typer.Argument(help="a folder or postgresql://...#name")],
    host: Annotated[
        str, typer.Option(help="address to listen on; others than this machine need a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free port", min=0, max=65535)] = 0,
    token: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME:]SECRET", help="who may come in (repeatable)"),
    ] = None,
    browser: Annotated[bool, typer.Option(help="open the browser")] = True,
) -> None:
    """Serve the page and its JSON twin until interrupted."""
    from resight.gallery import Gallery
    from resight.gallery.forgetting import resume
    from resight.web.serving import run

    opened = Gallery.open(gallery)
    opened.view  # noqa: B018  # what is damaged is said now, not on the first page
    for done in resume(opened):
        say(f"finished erasing {done.sightings} sightings, which was begun before")
    run(opened, host, port, tuple(token or ()), open_browser=browser, tell=say)
