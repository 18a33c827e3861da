"""Explained matches of a result, drawn over their crops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.datasets.sightings import Sightings
from resight.errors import InputError, ResightError
from resight.explanation.drawing import Picture, draw, picture
from resight.validation import parse_json, read_bytes


@dataclass(frozen=True)
class DrawnMatch:
    """A first match of a ranked list and its explanation as a part of a page."""

    right: bool
    words: str
    part: str


def read_matches(file: Path, sightings: Sightings) -> tuple[str, list[DrawnMatch]]:
    """Draw what `explanations.json` tells; return the run's title and the matches.

    Matches whose images cannot be read are left out; a missing file tells of none.
    """
    if not file.is_file():
        return "", []
    try:
        told = parse_json(read_bytes(file))
        drawn = [_drawn(match, sightings) for match in told["matches"]]
        return str(told["run"]), [match for match in drawn if match is not None]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged ({error}); run the evaluation again") from error


def _drawn(match: dict[str, Any], sightings: Sightings) -> DrawnMatch | None:
    try:
        pictures = [_picture(match[side], sightings) for side in ("query", "match")]
    except (ResightError, OSError):
        return None
    person = match["query"]["person"]
    words = f"{person}: the first match is correct"
    if not match["right"]:
        rank = match["first_rank"]
        words = f"{person}: the first match is {match['match']['person'] or 'unknown'}, wrong; "
        words += f"the correct person is at rank {rank}"
    return DrawnMatch(match["right"], words, draw(match["explanation"], *pictures))


def _picture(side: dict[str, Any], sightings: Sightings) -> Picture:
    from resight.images import cut, read

    image = read(sightings.root / side["path"])
    if side["box"] is not None:  # the sighting is a part of a larger picture
        image = cut(image, side["box"])
    return picture(image, f"{side['person'] or 'unknown'}, {side['camera']}")
