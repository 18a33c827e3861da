"""The doors: logging in and out, and the log of who did what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from resight.gallery import users
from resight.gallery.log import latest, log_head
from resight.web.answers import LogAnswer
from resight.web.rendering import render
from resight.web.security import Guard, RefusedError
from resight.web.visiting import Administrator, Text, Viewing, lead_to, set_cookie, twins

router = APIRouter()
_SHOWN = 200


@router.get("/login", response_class=HTMLResponse, include_in_schema=False)
def login_form(request: Request, next: Annotated[str, Query()] = "/") -> HTMLResponse:
    """Show the form to log in."""
    return _form(request, next)


@router.post("/login", include_in_schema=False)
def login(
    request: Request,
    name: Text = "",
    password: Text = "",
    key: Text = "",
    purpose: Text = "",
    next: Text = "/",
    csrf: Text = "",
) -> Response:
    """Begin a session, by name and password or by the key that the terminal showed."""
    guard: Guard = request.app.state.site.guard
    try:
        guard.check_change(request, csrf)
        if not purpose.strip() and guard.gallery.view.manifest.asks_purpose:
            raise RefusedError(422, "state the purpose of your searches; the log keeps it")
        secret = guard.enter(request, name.strip(), password, key, purpose.strip()[:500])
    except RefusedError as refused:
        return _form(request, next, refused.detail, name, refused.status_code)
    response = lead_to(next)
    set_cookie(request, response, guard.session, secret, max_age=int(users.LONGEST_SESSION))
    return response


@router.post("/logout", include_in_schema=False)
def logout(visit: Viewing) -> Response:
    """End the session."""
    guard = visit.site.guard
    visit.record("logout")
    users.revoke(guard.gallery.engine, visit.request.cookies.get(guard.session, ""))
    response = lead_to("/login")
    response.delete_cookie(guard.session)
    return response


@twins(router, "/log", LogAnswer, "gallery")
def log(visit: Administrator) -> Any:
    """List the latest entries of the log; `resight gallery log --export` has all of them."""
    engine = visit.site.gallery.engine
    entries = latest(engine, _SHOWN)[::-1]
    visit.record("read log")
    number, last = log_head(engine)
    return visit.answer("log.html", LogAnswer(head=f"{number}:{last}", entries=entries))


def _form(
    request: Request, next: str, words: str = "", name: str = "", status: int = 200
) -> HTMLResponse:
    guard: Guard = request.app.state.site.guard
    ways = {
        "by_password": bool(users.all_users(guard.gallery.engine)),
        "by_key": guard.on_link is not None,
        "purpose": guard.gallery.view.manifest.asks_purpose,
    }
    shown = {"visit": None, "csrf": guard.csrf(request), "next": next, "words": words, "name": name}
    return HTMLResponse(render("login.html", **shown, **ways), status)
