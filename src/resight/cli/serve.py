"""``resight serve``: serve the web page and JSON API of a gallery."""

from __future__ import annotations

from typing import Annotated

import typer

from resight.cli._common import GalleryPlace, option, say, verb

app = verb("Serve the web page and JSON API of a gallery.")


@app.command()
def serve(
    gallery: GalleryPlace,
    host: Annotated[
        str, option("HOST", "Address to listen on; other machines need a token")
    ] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port; 0 = any free port", min=0, max=65535)] = 0,
    token: Annotated[
        list[str] | None, option("[NAME:]SECRET", "Who has access (repeatable)", "a random token")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser")] = True,
) -> None:
    """Serve the web page and JSON API until interrupted."""
    from resight.gallery import Gallery
    from resight.gallery.forgetting import resume
    from resight.web.serving import run

    opened = Gallery.open(gallery)
    opened.view  # noqa: B018  # report damage now, not on the first page
    for done in resume(opened):
        say(f"finished erasing {done.sightings} sightings, begun earlier")
    run(opened, host, port, tuple(token or ()), open_browser=browser, tell=say)
