"""What every route needs of a request: site, user and role, conditions, the form of the answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator
from python_multipart import create_form_parser
from python_multipart.exceptions import FormParserError

from resight.errors import InputError
from resight.gallery import Filter
from resight.gallery.labels import Entry
from resight.gallery.log import Actor
from resight.gallery.users import ROLES, Role
from resight.gallery.view import View
from resight.times import EPOCH, parse, show, zone_of
from resight.web.answers import Sighting, sighting
from resight.web.rendering import render
from resight.web.security import RefusedError
from resight.web.site import Site

MAX_RESULTS = 500
PUBLIC = ("/login",)  # routes for those who are not logged in
_ZONE, _YEAR = "resight_zone", 365 * 86_400
Text = Annotated[str, Form()]
Page = Annotated[int, Query(ge=1)]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class FieldError(InputError):
    """A field of a form that holds what cannot be used: its message stands beside it."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


@contextmanager
def beside(field: str) -> Iterator[None]:
    """Say what is wrong beside a field of the form."""
    try:
        yield
    except InputError as error:
        raise FieldError(field, str(error)) from error


@dataclass(frozen=True)
class Visit:
    """One request by one user."""

    request: Request
    site: Site
    by: Actor
    role: str
    begin: float

    @property
    def csrf(self) -> str:
        """The word that forms of this visitor carry."""
        return self.site.guard.csrf(self.request)

    def may(self, role: Role) -> bool:
        """Whether the visitor may do what needs a role."""
        return self.role in ROLES[ROLES.index(role) :]

    def record(self, what: str, *, shown: Sequence[str] = (), **rest: Any) -> None:
        """Write what is about to be answered into the log."""
        self.site.gallery.record(self.by, what, begin=self.begin, shown=shown, **rest)
        self.site.has_seen(self.by.who, shown)

    def stored(self, key: str, view: View | None = None) -> Sighting:
        """Describe the sighting of that id, in a view or as it is now."""
        view = view or self.site.gallery.view
        if key not in view.rows:
            raise RefusedError(404, "this sighting is not in the gallery; it may have been removed")
        return sighting(view, view.rows[key])

    @cached_property
    def zone(self) -> str:
        """The time zone in which times are read and written: as chosen last, or UTC."""
        name = self.request.query_params.get("zone") or self.request.cookies.get(_ZONE, "UTC")
        try:
            zone_of(name)
        except InputError:
            return "UTC"
        return name

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page, or a part of one, with what all pages show."""
        view, zone = self.site.gallery.view, zone_of(self.zone)
        facts = {"sightings": len(view.table), "cameras": len(view.cameras)}
        facts |= {"persons": len(view.named), "taught": len(view.labels.active)}
        shown = {"visit": self, "csrf": self.csrf, "facts": facts, "zone": zone}
        response = HTMLResponse(render(template, **shown, **values), status)
        if self.request.query_params.get("zone") == self.zone:
            set_cookie(self.request, response, _ZONE, self.zone, max_age=_YEAR)
        return response

    def answer(self, template: str, answer: BaseModel, **values: Any) -> BaseModel | HTMLResponse:
        """Return the data of a page to its JSON twin, or the page."""
        return answer if self.by_twin else self.page(template, answer=answer, **values)

    def done(self, answer: Any, address: str) -> Any:
        """Answer a change: its data for programs, another page for browsers."""
        return answer if self.wants_json else lead_to(address)

    @property
    def just_said(self) -> Entry | None:
        """The answer that led to this page, which offers to undo it."""
        key = self.request.query_params.get("did")
        said = self.site.gallery.view.labels.active
        return next((entry for entry in reversed(said) if entry.key == key), None)

    @property
    def by_htmx(self) -> bool:
        """Whether the page itself asks for a part to be replaced."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def by_twin(self) -> bool:
        """Whether the data of a page is asked for, not the page."""
        return self.request.url.path.endswith(".json")

    @property
    def wants_json(self) -> bool:
        """Whether a program asks."""
        return "application/json" in self.request.headers.get("accept", "")


def twins(
    router: APIRouter, path: str, answer: type[BaseModel], tag: str
) -> Callable[[_Function], _Function]:
    """Make one function answer a page and its JSON twin (see `Visit.answer`)."""

    def register(function: _Function) -> _Function:
        html: dict[str, Any] = {"response_class": HTMLResponse, "response_model": None}
        router.get(path, include_in_schema=False, **html)(function)
        twin = f"{'/index' if path == '/' else path}.json"
        return router.get(twin, response_model=answer, tags=[tag])(function)

    return register


def lead_to(address: str) -> Response:
    """Send the browser to a page of this site, never to another one."""
    safe = address.startswith("/") and not address.startswith(("//", "/\\"))
    return RedirectResponse(address if safe else "/", 303)


def set_cookie(request: Request, response: Response, name: str, value: str, **rest: Any) -> None:
    """Set a cookie that no script reads and no other site sends."""
    secure = request.url.scheme == "https"
    response.set_cookie(name, value, httponly=True, samesite="strict", secure=secure, **rest)


def needs(role: Role) -> Callable[..., Awaitable[Visit]]:
    """Make the dependency of routes that need at least a role."""

    async def visit(request: Request) -> Visit:
        site, begin = cast(Site, request.app.state.site), time.time()
        who = site.guard.identify  # which reads the gallery, unless nobody logs in
        found = await run_in_threadpool(who, request) if site.guard.login else who(request)
        made = Visit(request, site, *found, begin)
        if not made.may(role):
            raise RefusedError(403, f"this needs the role {role}; you are {made.role}")
        return made

    visit.role = role  # type: ignore[attr-defined]  # `routes_and_roles` lists it
    return visit


def changes(role: Role) -> Callable[..., Visit]:
    """Make the dependency of routes that change something: their form must be ours."""
    needed = Depends(needs(role))

    def change(visit: Visit = needed, csrf: Text = "") -> Visit:
        visit.site.guard.check_change(visit.request, csrf)
        return visit

    change.role = role  # type: ignore[attr-defined]
    return change


async def read_form(visit: Visit, take: Callable[[str, Any], None], **how: Any) -> dict[str, str]:
    """Stream a form with files, each given to `take` with its name; return the other fields.

    `how` says how much of a file stays in memory, and where the rest goes.
    """
    request, fields, last = visit.request, dict[str, str](), ExitStack()

    def on_field(field: Any) -> None:
        fields[field.field_name.decode("utf-8", "replace")] = (field.value or b"").decode()

    def on_file(file: Any) -> None:
        take((file.file_name or b"").decode("utf-8", "replace"), file)
        last.close()
        last.callback(file.close)  # not now: at the end, python-multipart < 0.0.33 flushes it again

    headers = {"Content-Type": request.headers.get("content-type", "none").encode("latin-1")}
    how["MAX_FIELD_SIZE"] = 10_000
    try:
        with last:
            parser = create_form_parser(headers, on_field, on_file, config=how)
            async for chunk in request.stream():
                await run_in_threadpool(parser.write, chunk)
            await run_in_threadpool(parser.finalize)
    except (FormParserError, UnicodeDecodeError) as error:
        raise InputError("the upload contained no file, or is damaged; try again") from error
    visit.site.guard.check_change(request, fields.get("csrf", ""))
    return fields


Names = Annotated[tuple[str, ...], AfterValidator(lambda given: tuple(filter(None, given)))]
_Text = Annotated[str, AfterValidator(str.strip)]
_Drops = list[tuple[str, dict[str, Any]]]  # words for conditions, and what they become without
_Tick = Annotated[bool, BeforeValidator(lambda given: given in (True, "1"))]


@dataclass(frozen=True)
class Conditions:
    """The filters of a search as they stand in its address."""

    camera: Annotated[Names, Query(description="only these cameras")] = ()
    person: Annotated[Names, Query(description="only these people")] = ()
    after: Annotated[_Text, Query(description="seconds, h:mm:ss or an ISO date")] = ""
    before: Annotated[_Text, Query(description="same format as after")] = ""
    zone: Annotated[_Text, Query(description="time zone of after and before; empty: UTC")] = ""
    others: Annotated[_Tick, Query(description="1: exclude the query's own camera")] = False
    single: Annotated[_Tick, Query(description="1: every sighting of a track by itself")] = False
    k: Annotated[int, Query(ge=1, le=MAX_RESULTS, description="number of results")] = 24

    def filter(self, known: Sequence[str], own_camera: str = "") -> Filter:
        """Turn them into a filter; `others` leaves out the query's own camera."""
        exclude = (own_camera,) if self.others and own_camera and not self.camera else ()
        times = self._moment("after"), self._moment("before")
        with beside("before"):
            made = Filter(self.camera, exclude, *times, self.person)
        with beside("camera"):
            made.check_cameras(known)
        return made

    def _moment(self, field: str) -> float | None:
        with beside("zone"):
            zone = zone_of(self.zone or "UTC")
        with beside(field):
            return parse(getattr(self, field), zone) if getattr(self, field) else None

    def local(self, field: str) -> str | None:
        """Write a date as the date picker of a browser takes it; None if it is no date."""
        try:
            seconds = self._moment(field)
        except InputError:
            return None
        if seconds is not None and seconds < EPOCH:
            return None
        return show(seconds, zone_of(self.zone or "UTC")).replace(" ", "T")

    def values(self, **query: Any) -> dict[str, Any]:
        """Return what stands in the address, without what is empty."""
        zone = self.zone if self.after or self.before else ""
        given = query | vars(self) | {"zone": zone, "k": "" if self.k == 24 else self.k}
        return {name: "1" if value is True else value for name, value in given.items() if value}

    def address(self, path: str, **query: Any) -> str:
        """Write the address of a page under these conditions."""
        return f"{path}?{urlencode(self.values(**query), doseq=True)}"

    def chips(self, **query: Any) -> list[tuple[str, str]]:
        """Return words for each condition, and the address of the page without it."""
        drops: _Drops = []
        for name in ("camera", "person"):
            values = getattr(self, name)
            drops += [(v, {name: tuple(other for other in values if other != v)}) for v in values]
        drops += [] if self.camera else [("other cameras", {"others": False})]
        for end in ("after", "before"):
            text = getattr(self, end).replace("T", " ")
            drops.append((f"{end} {text} {self.zone}".strip(), {end: ""}))
        return self._without(drops, **query)

    def wider(self, **query: Any) -> list[tuple[str, str]]:
        """Return words for each kind of condition, and the address of the page without it."""
        drops: _Drops = [
            ("any camera", {"camera": (), "others": False}),
            ("any time", {"after": "", "before": ""}),
            ("any person", {"person": ()}),
        ]
        return self._without(drops, **query)

    def _without(self, drops: _Drops, **query: Any) -> list[tuple[str, str]]:
        left = [(words, replace(self, **drop)) for words, drop in drops]
        return [(words, one.address("/search", **query)) for words, one in left if one != self]


Viewer = Annotated[Visit, Depends(needs("viewer"))]
Teacher = Annotated[Visit, Depends(needs("teacher"))]
Administrator = Annotated[Visit, Depends(needs("administrator"))]
Viewing = Annotated[Visit, Depends(changes("viewer"))]
Teaching = Annotated[Visit, Depends(changes("teacher"))]
Administering = Annotated[Visit, Depends(changes("administrator"))]


async def _conditions(**given: Any) -> Conditions:
    """Make the conditions where the request is read: a class would be called in a thread."""
    return Conditions(**given)


_conditions.__signature__ = signature(Conditions)  # type: ignore[attr-defined]
Where = Annotated[Conditions, Depends(_conditions)]
