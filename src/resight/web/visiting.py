"""What every route needs of a request: site, user, conditions, the form of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from resight.gallery import Filter
from resight.times import parse
from resight.web.rendering import render
from resight.web.site import Site

MAX_RESULTS = 500


@dataclass(frozen=True)
class Visit:
    """One request by one user."""

    request: Request
    site: Site
    who: str
    csrf: str

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page with what all pages show."""
        common = {
            "csrf": self.csrf,
            "info": self.site.gallery.info(),
            "refit": self.site.job.state(),
        }
        return HTMLResponse(render(template, **common, **values), status)

    @property
    def by_htmx(self) -> bool:
        """Whether the page itself asks for a part to be replaced."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def wants_json(self) -> bool:
        """Whether a program asks."""
        return "application/json" in self.request.headers.get("accept", "")

    def back(self, address: str) -> Response:
        """Send the browser back to a page of this site."""
        safe = address.startswith("/") and not address.startswith(("//", "/\\"))
        return RedirectResponse(address if safe else "/", 303)


def visit(request: Request) -> Visit:
    """Collect what the middleware has found out."""
    site = cast(Site, request.app.state.site)
    return Visit(request, site, request.state.who, request.state.csrf)


def change(visit: Annotated[Visit, Depends(visit)], csrf: Annotated[str, Form()] = "") -> Visit:
    """Take a visit that changes something: its form must be ours."""
    visit.site.guard.check_change(visit.request, csrf or visit.request.headers.get("x-csrf", ""))
    return visit


@dataclass(frozen=True)
class Conditions:
    """The filters of a search as they stand in its address."""

    camera: tuple[str, ...]
    after: str
    before: str
    person: tuple[str, ...]
    others: bool
    k: int

    def filter(self, own_camera: str = "") -> Filter:
        """Turn them into a filter; `others` leaves out the query's own camera."""
        exclude = (own_camera,) if self.others and own_camera and not self.camera else ()
        return Filter(
            self.camera,
            exclude,
            parse(self.after) if self.after else None,
            parse(self.before) if self.before else None,
            self.person,
        )

    def values(self, **query: str) -> dict[str, Any]:
        """Return what stands in the address, without what is empty."""
        pairs = {
            **query,
            "camera": list(self.camera),
            "person": list(self.person),
            "after": self.after,
            "before": self.before,
            "others": "1" if self.others else "",
            "k": "" if self.k == 24 else str(self.k),
        }
        return {name: value for name, value in pairs.items() if value}

    def address(self, path: str, **query: str) -> str:
        """Write the address of a page under these conditions."""
        return f"{path}?{urlencode(self.values(**query), doseq=True)}"


def conditions(
    camera: Annotated[list[str] | None, Query(description="only these cameras")] = None,
    after: Annotated[str, Query(description="seconds, h:mm:ss or an ISO date")] = "",
    before: Annotated[str, Query(description="same format as after")] = "",
    person: Annotated[list[str] | None, Query(description="only these people")] = None,
    others: Annotated[str, Query(description="1: exclude the query's own camera")] = "",
    k: Annotated[int, Query(ge=1, le=MAX_RESULTS, description="number of results")] = 24,
) -> Conditions:
    """Read the filters from the address."""
    return Conditions(
        tuple(filter(None, camera or ())),
        after.strip(),
        before.strip(),
        tuple(filter(None, person or ())),
        others == "1",
        k,
    )


Visitor = Annotated[Visit, Depends(visit)]
Changer = Annotated[Visit, Depends(change)]
Where = Annotated[Conditions, Depends(conditions)]
