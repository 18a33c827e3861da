"""Ranked lists of a run, and explained matches, as pictures for the template of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resight.datasets.sightings import Sightings
from resight.errors import InputError, ResightError
from resight.explanation.drawing import draw, picture
from resight.images import cut, read
from resight.images.reading import data_uri
from resight.validation import parse_json, read_bytes

_QUERIES = 24  # pictures keep the file small: at most so many queries ...
_ANSWERS = 8  # ... with so many answers each
_HEIGHT = 96


def worst_first(rows: list[dict[str, str]], sightings: Sightings) -> list[dict[str, Any]]:
    """Show ranked lists of the first run and split: the worst, down to some that went well.

    A picture is a data URI, None where the file cannot be read.
    """
    own = [row for row in rows if row["run"] == "0" and row["split"] == "0"]
    own.sort(key=lambda row: -int(row["first_rank"]))
    step = max(1, len(own) // _QUERIES)
    worst, rest = own[: _QUERIES // 2], own[_QUERIES // 2 :: step]
    labels = zip(sightings.persons.tolist(), sightings.cameras.tolist(), strict=True)
    known = dict(zip(sightings.paths.tolist(), labels, strict=True))
    lists = []
    for row in worst + rest[: _QUERIES - len(worst)]:
        answers = []
        for path in row["top_paths"].split("|")[:_ANSWERS]:
            person, camera = known.get(path, ("", ""))
            label, right = f"{person or 'unknown'}, {camera}", person == row["person"]
            shown = _picture(sightings, path)
            answers.append({"picture": shown, "label": label, "right": right})
        shown, rank = _picture(sightings, row["query"]), int(row["first_rank"])
        query = {"picture": shown, "person": row["person"], "camera": row["query_camera"]}
        lists.append({**query, "first_rank": rank, "answers": answers})
    return lists


def _picture(sightings: Sightings, path: str) -> str | None:
    try:
        return data_uri(read(sightings.root / path), _HEIGHT, quality=78)
    except (ResightError, OSError):
        return None


def read_matches(file: Path, sightings: Sightings) -> tuple[str, list[dict[str, Any]]]:
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


def _drawn(match: dict[str, Any], sightings: Sightings) -> dict[str, Any] | None:
    """Say whether a first match is right, and draw its explanation as a part of a page."""
    pictures = []
    for side in (match["query"], match["match"]):
        try:
            image = read(sightings.root / side["path"])
        except (ResightError, OSError):
            return None
        if side["box"] is not None:  # the sighting is a part of a larger picture
            image = cut(image, side["box"])
        pictures.append(picture(image, f"{side['person'] or 'unknown'}, {side['camera']}"))
    words = "the first match is correct"
    if not match["right"]:
        words = f"the first match is {match['match']['person'] or 'unknown'}, wrong; "
        words += f"the correct person is at rank {match['first_rank']}"
    words = f"{match['query']['person']}: {words}"
    part = draw(match["explanation"], *pictures)
    return {"right": match["right"], "words": words, "part": part}
