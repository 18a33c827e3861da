"""The server: routes, guard and error pages put together."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from resight._version import __version__
from resight.errors import InputError, ResightError
from resight.gallery import Gallery
from resight.web.rendering import STATIC, render
from resight.web.routes import browsing, explaining, people, refit, searching, teaching
from resight.web.security import HEADERS, SESSION, TOKEN, Guard, RefusedError
from resight.web.site import Site

Next = Callable[[Request], Awaitable[Response]]


def make_app(gallery: Gallery, guard: Guard) -> FastAPI:
    """Build the application over an open gallery."""
    app = FastAPI(
        title="resight",
        version=__version__,
        description=(
            "Search a gallery of sightings and label matches. Every page is also "
            "available as JSON; changes are sent as forms and need the session's "
            "`csrf` token (from /info.json) or a Bearer token."
        ),
        docs_url=None,  # its viewer would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.site = Site(gallery, guard)
    for part in (browsing, searching, explaining, teaching, people, refit):
        app.include_router(part.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.middleware("http")(_guarded)
    for kind in (ResightError, RefusedError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _explain)
    return app


async def _guarded(request: Request, go_on: Next) -> Response:
    """Check host, size and token, give the session its cookie, add the headers."""
    guard: Guard = request.app.state.site.guard
    session = request.cookies.get(SESSION) or secrets.token_urlsafe(16)
    request.state.csrf = guard.csrf(session)
    try:
        guard.check_host(request)
        guard.check_size(request)
        if not request.url.path.startswith("/static/"):
            request.state.who = guard.who(request)
        response = _without_token(request) or await go_on(request)
    except RefusedError as refused:
        response = await _explain(request, refused)
        response.headers["Connection"] = "close"  # whatever else was sent is not read
    except Exception as error:  # a bug: the page says so, with the headers of every page
        logging.getLogger(__name__).exception("%s %s failed", request.method, request.url.path)
        response = await _explain(request, error)
    for name, value in HEADERS.items():
        response.headers[name] = value
    if SESSION not in request.cookies:
        response.set_cookie(SESSION, session, httponly=True, samesite="strict")
    return response


def _without_token(request: Request) -> Response | None:
    """Move a valid token from the address into a cookie, so that it is not passed on by links."""
    token = request.query_params.get("token")
    if token is None or request.method != "GET":
        return None
    response = RedirectResponse(str(request.url.remove_query_params("token")), 303)
    response.set_cookie(TOKEN, token, httponly=True, samesite="strict")
    return response


async def _explain(request: Request, error: Exception) -> Response:
    """Say what went wrong, as a page, a part of a page or JSON."""
    status, words = _in_words(error)
    wants_json = "application/json" in request.headers.get("accept", "")
    if wants_json or request.url.path.endswith(".json"):
        return JSONResponse({"error": words}, status)
    if request.headers.get("hx-request") == "true":
        # htmx shows it in the place for messages and leaves the rest of the page alone.
        headers = {"HX-Retarget": "#message", "HX-Reswap": "innerHTML"}
        return HTMLResponse(render("message_part.html", words=words), 200, headers)
    return HTMLResponse(render("error.html", words=words, status=status), status)


def _in_words(error: Any) -> tuple[int, str]:
    if isinstance(error, RefusedError):
        return error.status, error.words
    if isinstance(error, InputError):
        return 422, str(error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return 422, f"{first['loc'][-1]}: {first['msg']}. Correct the URL or the form"
    if isinstance(error, HTTPException):
        words = "page not found" if error.status_code == 404 else str(error.detail)
        return error.status_code, words
    if isinstance(error, ResightError):
        return 500, str(error)
    return 500, "something went wrong here; the server's log says what"
