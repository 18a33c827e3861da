"""An explanation as a picture: strips coloured over the two crops, channels as bars."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from numpy.typing import NDArray

from resight.explanation.explanation import PEOPLE, SHARES, Explanation, Share, percent

_TEMPLATES = Path(__file__).parent / "templates"
_LOW, _HIGH = "#2166ac", "#c2510a"  # blue and orange: told apart by colour-blind people as well
_STRONGEST = 0.45  # opacity: the crop must stay visible below the colour
_FULL_AT = 4.0  # times more or less than usual, where the colour is strongest
_HEIGHT = 256  # of the drawn crops; widths keep their proportions
_KEPT_HEIGHT = 256  # pixels of an embedded picture: enough for the screen


@dataclass(frozen=True)
class Picture:
    """One of the two crops: where its image is, its size in pixels, and words for it."""

    source: str
    width: int
    height: int
    caption: str

    @property
    def drawn_width(self) -> float:
        """Width at the drawn height, within reason."""
        return float(np.clip(_HEIGHT * self.width / self.height, 64, 160))


@dataclass(frozen=True)
class Strip:
    """One band of the picture: place, colour and figure."""

    top: float
    height: float
    colour: str
    opacity: float
    text: str


def picture(image: NDArray[np.uint8], caption: str) -> Picture:
    """Embed an RGB image, so that a page needs no other file."""
    from PIL import Image

    shown = Image.fromarray(image)
    if shown.height > _KEPT_HEIGHT:
        width = max(1, round(shown.width * _KEPT_HEIGHT / shown.height))
        shown = shown.resize((width, _KEPT_HEIGHT))
    stream = io.BytesIO()
    shown.save(stream, "JPEG", quality=85)
    source = "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
    return Picture(source, image.shape[1], image.shape[0], caption)


def draw(explanation: Explanation, first: Picture, second: Picture) -> str:
    """Return the explanation as a part of an HTML page, without any script."""
    return (
        _environment()
        .get_template("explanation.html")
        .render(
            explanation=explanation,
            first=first,
            second=second,
            strips=strips(explanation),
            height=_HEIGHT,
            bars=_bars(explanation),
            unit=_unit(explanation),
            legend=_legend(explanation),
        )
    )


def draw_page(explanation: Explanation, first: Picture, second: Picture) -> str:
    """Return one self-contained HTML page."""
    part = draw(explanation, first, second)
    return _environment().get_template("page.html").render(part=part, first=first, second=second)


def strips(explanation: Explanation) -> list[Strip]:
    """Colour the bands: blue below, orange above what is usual; none where it is usual."""
    bands = explanation.bands
    height = _HEIGHT / len(bands)
    most = max((abs(band.contribution) for band in bands), default=0.0) or 1.0
    found = []
    for i, band in enumerate(bands):
        strength = _strength(band, most)
        found.append(
            Strip(
                i * height,
                height,
                _HIGH if strength > 0 else _LOW,
                round(_STRONGEST * abs(strength), 3),
                figure(band),
            )
        )
    return found


def figure(share: Share) -> str:
    """Write the level of a part, or its share of the distance where there is no level."""
    return percent(share.share if share.level is None else share.level)


def _strength(band: Share, most: float) -> float:
    """From -1 (far below the usual) to 1; without a level by size alone."""
    if band.level is None:
        return max(0.0, band.contribution / most)
    if band.level <= 0:
        return -1.0
    return float(np.clip(np.log(band.level) / np.log(_FULL_AT), -1.0, 1.0))


def _bars(explanation: Explanation) -> list[dict[str, Any]]:
    """Channels with the length of their bars, in percent of the longest."""
    channels = explanation.channels
    most = max(abs(channel.share) for channel in channels) or 1.0
    return [
        {"channel": channel, "length": round(100 * max(0.0, channel.share) / most, 1)}
        for channel in channels
    ]


def _unit(explanation: Explanation) -> str:
    return "of distance" if explanation.usual is None else "of the usual"


def _legend(explanation: Explanation) -> str:
    pairs = explanation.n_usual
    if explanation.compared == PEOPLE:
        return (
            "Blue strips are more alike than they usually are between different people, orange "
            f"ones less. Figures: percent of the usual (mean of {pairs} pairs of different people)."
        )
    if explanation.compared == SHARES:
        return (
            "Orange strips make up more of the distance than they usually do, blue ones less. "
            f"Figures: percent of the usual share (mean of {pairs} pairs of training sightings)."
        )
    return "The stronger the orange, the more of the distance comes from that strip."


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["figure"] = figure
    made.filters["percent"] = percent
    return made
