"""Ranked lists of a run, and explained matches, as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resight.datasets.sightings import Sightings
from resight.errors import InputError, ResightError
from resight.explanation.drawing import Picture, draw, picture
from resight.images import cut, read
from resight.images.reading import data_uri
from resight.validation import parse_json, read_bytes

_QUERIES = 24  # pictures keep the file small: at most so many queries ...
_ANSWERS = 8  # ... with so many answers each
_HEIGHT = 96


@dataclass(frozen=True)
class Answer:
    """One place of a ranked list."""

    picture: str | None  # data URI, None where the file cannot be read
    label: str
    right: bool


@dataclass(frozen=True)
class QueryList:
    """A query with the head of its ranked list."""

    picture: str | None
    person: str
    camera: str
    first_rank: int
    answers: tuple[Answer, ...]


def worst_first(rows: list[dict[str, str]], sightings: Sightings) -> list[QueryList]:
    """Pictures of the first run and split: the worst queries, down to some that went well."""
    own = [row for row in rows if row["run"] == "0" and row["split"] == "0"]
    own.sort(key=lambda row: -int(row["first_rank"]))
    step = max(1, len(own) // _QUERIES)
    worst, rest = own[: _QUERIES // 2], own[_QUERIES // 2 :: step]
    chosen = worst + rest[: _QUERIES - len(worst)]
    place = {path: i for i, path in enumerate(sightings.paths.tolist())}
    return [_query_list(row, sightings, place) for row in chosen]


def _query_list(row: dict[str, str], sightings: Sightings, place: dict[str, int]) -> QueryList:
    answers = []
    for path in row["top_paths"].split("|")[:_ANSWERS]:
        i = place.get(path)
        person = "" if i is None else str(sightings.persons[i])
        camera = "" if i is None else str(sightings.cameras[i])
        right = person == row["person"]
        answers.append(Answer(_picture(sightings, path), f"{person or 'unknown'}, {camera}", right))
    return QueryList(
        _picture(sightings, row["query"]),
        row["person"],
        row["query_camera"],
        int(row["first_rank"]),
        tuple(answers),
    )


def _picture(sightings: Sightings, path: str) -> str | None:
    try:
        return data_uri(read(sightings.root / path), _HEIGHT, quality=78)
    except (ResightError, OSError):
        return None


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
        pictures = [_crop(match[side], sightings) for side in ("query", "match")]
    except (ResightError, OSError):
        return None
    person = match["query"]["person"]
    words = f"{person}: the first match is correct"
    if not match["right"]:
        rank = match["first_rank"]
        words = f"{person}: the first match is {match['match']['person'] or 'unknown'}, wrong; "
        words += f"the correct person is at rank {rank}"
    return DrawnMatch(match["right"], words, draw(match["explanation"], *pictures))


def _crop(side: dict[str, Any], sightings: Sightings) -> Picture:
    image = read(sightings.root / side["path"])
    if side["box"] is not None:  # the sighting is a part of a larger picture
        image = cut(image, side["box"])
    return picture(image, f"{side['person'] or 'unknown'}, {side['camera']}")
