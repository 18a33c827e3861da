"""Templates: every value is escaped, so names with markup are shown as text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import timezone
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context

from resight.gallery import Hits
from resight.gallery.crops import image_type, keep
from resight.images import read
from resight.times import show

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


@cache
def environment() -> Environment:
    """Return the templates with their filters."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["time"] = _time
    made.filters["thousands"] = lambda count: f"{count:,}"
    made.filters["percent"] = lambda share: f"{100 * share:.0f}%"
    made.filters["distance"] = lambda value: f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    made.filters["query"] = lambda values: urlencode(values, doseq=True)
    return made


@pass_context
def _time(context: Any, seconds: float | None) -> str:
    """Write a time in the time zone of the visitor."""
    return show(seconds, context.get("zone", timezone.utc))


def render(template: str, **values: Any) -> str:
    """Fill in a template."""
    return environment().get_template(template).render(**values)


def render_results(
    gallery: str,
    queries: Sequence[tuple[str, bytes, Hits]],
    image: Callable[[str], bytes],
    mark: str = "",
) -> str:
    """Make one self-contained page of search results: name, image and hits of each query.

    `mark` says above them what was done to their order.
    """
    shown = [
        {
            "name": name,
            "image": data_uri(keep(content, read(content, name), None)[0]),
            "presence": hits.presence,
            "hits": [(hit, data_uri(image(hit.id))) for hit in hits],
        }
        for name, content, hits in queries
    ]
    style = (STATIC / "page.css").read_text(encoding="utf-8")
    return render("results.html", gallery=gallery, queries=shown, mark=mark, style=style)


def data_uri(content: bytes) -> str:
    """Put an image into a page."""
    return f"data:{image_type(content)};base64,{base64.b64encode(content).decode()}"
