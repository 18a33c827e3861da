"""An explanation as a picture: strips coloured over the two crops, channels as bars."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from numpy.typing import NDArray

from resight.explanation.explanation import alike, percent
from resight.images.reading import data_uri

_TEMPLATES = Path(__file__).parent / "templates"
_LOW, _HIGH = "#2166ac", "#c2510a"  # blue and orange: told apart by colour-blind people as well
_STRONGEST = 0.45  # opacity: the crop must stay visible below the colour
_FULL_BELOW, _FULL_ABOVE = 0.05, 4.0  # of the usual, where the colour is strongest
_HEIGHT = 256  # of the drawn crops; widths keep their proportions
_KEPT_HEIGHT = 256  # pixels of an embedded picture: enough for the screen


class Picture(NamedTuple):
    """One of the two crops: where its image is, its size in pixels, and words for it."""

    source: str
    width: int
    height: int
    caption: str

    @property
    def drawn_width(self) -> float:
        """Width at the drawn height, within reason."""
        return float(np.clip(_HEIGHT * self.width / self.height, 64, 160))


class Strip(NamedTuple):
    """One band of the picture: colour and figure."""

    colour: str
    opacity: float
    text: str


def picture(image: NDArray[np.uint8], caption: str) -> Picture:
    """Embed an RGB image, so that a page needs no other file."""
    source = data_uri(image, min(len(image), _KEPT_HEIGHT), quality=85)
    return Picture(source, image.shape[1], image.shape[0], caption)


def draw(told: dict[str, Any], first: Picture, second: Picture) -> str:
    """Return what `Explanation.to_dict` told as a part of an HTML page, without any script."""
    template = _environment().get_template("explanation.html")
    return template.render(
        told=told, first=first, second=second, strips=strips(told), height=_HEIGHT
    )


def draw_page(told: dict[str, Any], first: Picture, second: Picture) -> str:
    """Return one self-contained HTML page."""
    part = draw(told, first, second)
    return _environment().get_template("page.html").render(part=part, first=first, second=second)


def strips(told: dict[str, Any]) -> list[Strip]:
    """Colour the bands: blue below, orange above what is usual; none where it is usual."""
    most = max(abs(band["contribution"]) for band in told["bands"]) or 1.0
    found = []
    for band in told["bands"]:
        strength = _strength(band, most)
        colour = _HIGH if strength > 0 else _LOW
        opacity = round(_STRONGEST * abs(strength), 3)
        found.append(Strip(colour, opacity, _figure(band)))
    return found


def _figure(share: dict[str, Any]) -> str:
    """Write how alike a part is, or its share of the distance where that is not known."""
    return percent(share["share"] if share["level"] is None else alike(share["level"]))


def _strength(band: dict[str, Any], most: float) -> float:
    """From -1 (far below the usual) to 1; without a level by size alone."""
    if band["level"] is None:
        return max(0.0, band["contribution"] / most)
    level = float(np.clip(band["level"], _FULL_BELOW, _FULL_ABOVE))
    strength = abs(np.log(level) / np.log(_FULL_ABOVE if level > 1 else _FULL_BELOW))
    return float(strength if level > 1 else -strength)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["figure"] = _figure
    made.filters["percent"] = percent
    made.filters["number"] = lambda value: f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return made
