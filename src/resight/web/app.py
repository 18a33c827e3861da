"""The server: routes, guard and error pages put together."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from resight._version import __version__
from resight.errors import ConflictError, InputError, ResightError
from resight.gallery import Gallery
from resight.web.rendering import STATIC, render
from resight.web.routes import doors, jobs, people, searching, teaching
from resight.web.security import HEADERS, LIMITS, Guard, RefusedError
from resight.web.site import Site
from resight.web.visiting import PUBLIC, FieldError, Visit, set_cookie

_PARTS = (doors, searching, people, jobs, teaching)


def make_app(gallery: Gallery, guard: Guard | None = None, spool: Path | None = None) -> FastAPI:
    """Build the application over an open gallery; uploads wait in `spool` (see `gallery.spool`)."""
    app = FastAPI(
        title="resight",
        version=__version__,
        description=(
            "Search a gallery of sightings and label matches. Every page is also available as "
            "JSON. A program sends a token of `resight gallery users --token` as Bearer; changes "
            "sent by a browser need the session's `csrf` word (from /info.json)."
        ),
        openapi_url=None,  # what there is to do is shown to those who may come in
        docs_url=None,  # its viewer would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.site = Site(gallery, guard or Guard(gallery), spool)
    routes_and_roles()  # refuses a route that does not say who may use it
    for part in _PARTS:
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(_Guarded)
    for kind in (ResightError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _explain)
    return app


def routes_and_roles() -> list[tuple[str, str, str]]:
    """List method, path and the least role of every route; empty: whoever can connect."""
    found = []
    for route in (route for part in _PARTS for route in part.router.routes):
        assert isinstance(route, APIRoute)
        calls = [one.call for one in route.dependant.dependencies]
        roles = [call.role for call in calls if hasattr(call, "role")]  # type: ignore[union-attr]
        if not roles and route.path not in PUBLIC:
            raise TypeError(f"the route {route.path} does not say which role it needs")
        found += [(method, route.path, *(roles or [""])) for method in sorted(route.methods or ())]
    return found


class _Guarded:
    """Checks host and size, limits the time, gives forms their cookie, adds the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, begun, late = Request(scope, receive), False, False
        guard: Guard = scope["app"].state.site.guard
        request.state.form = request.cookies.get(guard.form) or secrets.token_urlsafe(32)

        async def send_on(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _add_headers(request, guard, MutableHeaders(scope=message))
            await send(message)

        async def send_in_time(message: Message) -> None:
            if not late:  # otherwise the client was told something else meanwhile
                await send_on(message)

        try:
            guard.check_host(request)
            guard.check_size(request)
            # Not `wait_for`: what a thread has begun cannot be cancelled, and would be waited for.
            work = asyncio.ensure_future(self._app(scope, receive, send_in_time))
            await asyncio.wait({work}, timeout=LIMITS.answer)
            late = not work.done() and not begun
            if late:
                work.add_done_callback(lambda work: work.cancelled() or work.exception())
                raise RefusedError(503, f"no answer within {LIMITS.answer:g} s; try again later")
            return await work
        except RefusedError as refused:
            response = await _explain(request, refused)
            response.headers["Connection"] = "close"  # whatever else was sent is not read
        except Exception as error:  # a bug: the page says so, with the headers of every page
            logging.getLogger(__name__).exception("%s %s failed", request.method, request.url.path)
            response = await _explain(request, error)
        if not begun:
            await response(scope, receive, send_on)


def _add_headers(request: Request, guard: Guard, headers: MutableHeaders) -> None:
    headers.update(HEADERS)
    if not request.url.path.startswith("/static/"):
        headers["Cache-Control"] = "no-store"  # nothing is left in a browser's cache
    if guard.form not in request.cookies:
        given = Response()
        set_cookie(request, given, guard.form, request.state.form)
        headers.append("set-cookie", given.headers["set-cookie"])


async def _explain(request: Request, error: Exception) -> Response:
    """Say what went wrong, as a page, a part of a page or JSON."""
    status, words = _in_words(error)
    accepted = request.headers.get("accept", "")
    if status == 401 and request.method == "GET" and "text/html" in accepted:
        here = str(request.url.replace(scheme="", netloc=""))
        return RedirectResponse(f"/login?{urlencode({'next': here})}", 303)
    if "application/json" in accepted or request.url.path.endswith(".json"):
        field = {"field": error.field} if isinstance(error, FieldError) else {}
        return JSONResponse({"error": words, **field}, status)
    if request.headers.get("hx-request") == "true":
        # htmx shows it in the place for messages and leaves the rest of the page alone.
        headers = {"HX-Retarget": "#message", "HX-Reswap": "innerHTML"}
        return HTMLResponse(render("message_part.html", words=words), 200, headers)
    site: Site = request.app.state.site
    visit: Visit | None = None
    with suppress(Exception):  # who is not logged in gets no navigation
        by, role = site.guard.identify(request)
        visit = Visit(request, site, by, role, time.time())
    csrf = site.guard.csrf(request) if visit else ""
    page = render("error.html", words=words, status=status, visit=visit, csrf=csrf)
    return HTMLResponse(page, status)


def _in_words(error: Any) -> tuple[int, str]:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return 422, f"{first['loc'][-1]}: {first['msg']}. Correct the URL or the form"
    if isinstance(error, HTTPException):
        return error.status_code, "page not found" if error.detail == "Not Found" else error.detail
    for kind, status in ((ConflictError, 409), (InputError, 422), (ResightError, 500)):
        if isinstance(error, kind):
            return status, str(error)
    return 500, "something went wrong here; the server's log says what"
