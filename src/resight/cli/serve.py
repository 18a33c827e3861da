"""``resight serve``: serve the web page and JSON API of a gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from resight.cli._common import Cluster, GalleryPlace, open_searched, option, say, verb

app = verb("Serve the web page and JSON API of a gallery.")

_File = {"exists": True, "dir_okay": False}


@app.command()
def serve(
    ctx: typer.Context,
    gallery: GalleryPlace,
    host: Annotated[str, option("HOST", "Address to listen on")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port; 0 = any free port", min=0, max=65535)] = 0,
    login: Annotated[
        bool, typer.Option(help="Whoever comes has to log in; without, everybody may do everything")
    ] = True,
    session: Annotated[
        float, option("MINUTES", "Log users out after so long without a request", min=1)
    ] = 60,
    certfile: Annotated[
        Path | None, option("FILE", "Certificate (PEM), for https", "none", **_File)
    ] = None,
    keyfile: Annotated[
        Path | None, option("FILE", "Its private key (PEM)", "in the certificate", **_File)
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        option("NAME", "Name by which it is addressed (repeatable)", "the address it listens on"),
    ] = None,
    behind_proxy: Annotated[
        str | None, option("ADDRESS", "Proxy whose X-Forwarded-For and -Proto are believed", "none")
    ] = None,
    spool: Annotated[
        Path | None,
        option("DIR", "Where uploads wait until they are added", "in the gallery", file_okay=False),
    ] = None,
    cluster: Cluster = None,
    browser: Annotated[bool, typer.Option(help="Open the browser")] = True,
) -> None:
    """Serve the web page and JSON API until interrupted.

    Users are kept in the gallery (`resight gallery users`). While there are none, a link for one
    log-in is printed.
    """
    from resight.gallery.forgetting import resume
    from resight.web.serving import Settings, run

    opened = open_searched(ctx, gallery, cluster)
    opened.view  # noqa: B018  # report damage now, not on the first page
    for done in resume(opened):
        say(f"finished erasing {done.sightings} sightings, begun earlier")
    names, proxy = tuple(allow_host or ()), behind_proxy
    settings = Settings(host, port, login, session, certfile, keyfile, names, proxy, browser, spool)
    # Also with --quiet: without the address and the way in a server is of no use.
    run(opened, settings, tell=lambda words: typer.echo(words, err=True))
