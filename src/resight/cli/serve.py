"""``resight serve``: serve the web page and JSON API of a gallery."""

from __future__ import annotations

from pathlib import Path

import typer

from resight.cli._common import Cluster, GalleryPlace, open_gallery, option, say

_File = {"exists": True, "dir_okay": False}


def serve(
    ctx: typer.Context,
    gallery: GalleryPlace,
    host: str = option("127.0.0.1", "HOST", "Address to listen on"),
    port: int = option(0, "PORT", "Port; 0 = any free port", min=0, max=65535),
    login: bool = typer.Option(
        True, help="Require log-in; without it everybody who reaches the page may do everything"
    ),
    session: float = option(
        60, "MINUTES", "Log users out after this long without a request", min=1
    ),
    certfile: Path | None = option(None, "FILE", "Certificate (PEM), for https", "none", **_File),
    keyfile: Path | None = option(
        None, "FILE", "Its private key (PEM)", "in the certificate", **_File
    ),
    allow_host: list[str] | None = option(
        None, "NAME", "Host name clients may use (repeatable)", "the address it listens on"
    ),
    behind_proxy: str | None = option(
        None, "ADDRESS", "Proxy whose X-Forwarded-For and X-Forwarded-Proto are trusted", "none"
    ),
    spool: Path | None = option(
        None, "DIR", "Where uploads wait until they are added", "in the gallery", file_okay=False
    ),
    cluster: Cluster = None,
    browser: bool = typer.Option(True, help="Open the browser"),
) -> None:
    """Serve the web page and JSON API until interrupted.

    Users are kept in the gallery (`resight gallery users`). While there are none, a link for one
    log-in is printed.
    """
    from resight.gallery.forgetting import resume
    from resight.web.serving import Settings, run

    opened = open_gallery(gallery, ctx, cluster)
    opened.view  # noqa: B018  # report damage now, not on the first page
    for done in resume(opened):
        say(f"finished erasing {done.sightings} sightings, begun earlier")
    names, proxy = tuple(allow_host or ()), behind_proxy
    settings = Settings(host, port, login, session, certfile, keyfile, names, proxy, browser, spool)
    # Also with --quiet: without the address and the way in a server is of no use.
    run(opened, settings, tell=lambda words: typer.echo(words, err=True))
