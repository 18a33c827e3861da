"""Templates: every value is escaped, so names with markup are shown as text."""

from __future__ import annotations

import base64
from datetime import timezone
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context

from resight.gallery.crops import image_type
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


def data_uri(content: bytes) -> str:
    """Put an image into a page."""
    return f"data:{image_type(content)};base64,{base64.b64encode(content).decode()}"
