"""``resight data``: list known datasets, describe and check folders of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from resight.cli._common import Data, Json, Root, answer, count, say

if TYPE_CHECKING:
    from resight.datasets import Sightings

_SHOWN = 10  # examples printed of a long list; --json has all
_SPREAD = ("min", "max", "median")


def list_(json: Json = False) -> None:
    """List the published datasets that resight can read."""
    from resight.datasets import DATASETS
    from resight.datasets.folders import LAYOUTS

    facts = ("name", "title", "summary", "licence", "citation", "people", "images")
    known = [
        {fact: getattr(dataset, fact) for fact in facts} | {"layouts": list(dataset.layouts)}
        for dataset in DATASETS.values()
    ]
    lines = [
        f"{one.name}: {one.title}, {one.people:,} people, {one.images:,} images\n  {one.summary}\n"
        f"  layout: {' or '.join(one.layouts)}\n  licence: {one.licence}\n  {one.citation}\n"
        for one in DATASETS.values()
    ]
    text = "\n".join([*lines, f"your own data: {LAYOUTS}"])
    answer(json, {"schema": "resight.datasets/1", "datasets": known}, text)


def info(data: Data, root: Root = None, json: Json = False) -> None:
    """Count people, cameras and images; show which protocols are possible."""
    from resight.datasets import load

    document = _described(load(data, root))
    answer(json, document, _info(document))


def check(data: Data, root: Root = None, json: Json = False) -> None:
    """Read every file; list unreadable and duplicate images and what prevents an evaluation.

    The exit code is 1 if something must be fixed before the data can be used.
    """
    from resight.datasets import fingerprint, load
    from resight.datasets.inspection import check_files

    sightings = load(data, root)
    document = _described(sightings) | check_files(sightings)
    document |= {"fingerprint": fingerprint(sightings)}
    document |= {"problems": _problems(document), "notes": _notes(document, sightings)}
    if not json:
        for entry in document["unreadable"][:_SHOWN]:
            say(f"unreadable: {entry['path']}: {entry['reason']}")
        for group in document["conflicts"][:_SHOWN]:
            say(f"same image, different people: {_examples(group)}")
    lines = [_info(document), *(f"note: {note}" for note in document["notes"])]
    lines += [f"problem: {problem}" for problem in document["problems"]]
    lines.append(f"fingerprint: {document['fingerprint']}")
    lines += [] if document["problems"] else ["no problems found"]
    answer(json, document, "\n".join(lines))
    if document["problems"]:
        raise typer.Exit(1)


def _described(sightings: Sightings) -> dict[str, Any]:
    from resight.datasets.inspection import overview
    from resight.protocols import possible

    return {
        "schema": "resight.data/1",
        "name": sightings.name,
        **overview(sightings),
        "protocols": [{"name": name, "why_not": why} for name, why in possible(sightings)],
    }


def _problems(document: dict[str, Any]) -> list[str]:
    """List what must be fixed before the data can be used."""
    found = []
    if document["unreadable"]:
        found.append(f"{count(len(document['unreadable']), 'unreadable file')}: repair or remove")
    if document["conflicts"]:
        images = count(len(document["conflicts"]), "image")
        found.append(f"{images} labelled as more than one person: keep the correct label")
    if all(protocol["why_not"] for protocol in document["protocols"]):
        found.append("no evaluation is possible: see the reason next to each protocol")
    return found


def _notes(document: dict[str, Any], sightings: Sightings) -> list[str]:
    """List what is worth knowing but harmless."""
    from resight.datasets import DATASETS
    from resight.datasets._walk import images_below

    found = []
    harmless = len(document["duplicates"]) - len(document["conflicts"])
    if harmless:
        found.append(count(harmless, "duplicate image"))
    if document["one_camera_only"]:
        people = len(document["one_camera_only"])
        found.append(f"{people:,} people appear in one camera only: they cannot be queries")
    expected = DATASETS[sightings.name].images if sightings.name in DATASETS else None
    if expected is not None and expected != len(sightings):
        found.append(f"the complete dataset has {expected:,} images, this copy {len(sightings):,}")
    others = images_below(Path(sightings.root), others=True)
    ignored = [path for path in others if path.name != "sightings.csv"]
    if ignored:
        files = count(len(ignored), "file")
        found.append(f"ignored {files} not recognised as images, such as {ignored[0]}")
    return found


def _info(document: dict[str, Any]) -> str:
    lines = [f"{document['name']}: {document['images']:,} images, {document['people']:,} people"]
    marked = {"unknown": "of unknown people", "distractors": "of distractors"}
    for name, words in {**marked, "junk": "marked as junk"}.items():
        lines += [f"  {document[name]:,} images {words}"] if document[name] else []
    for camera, counts in document["cameras"].items():
        lines.append(f"  camera {camera}: {counts['images']:,} images, {counts['people']:,} people")
    least, most, median = map(document["images_per_person_and_camera"].get, _SPREAD)
    lines.append(f"  images per person and camera: {least} to {most}, median {median:g}")
    alone = document["one_camera_only"]
    lines += [f"  in one camera only: {len(alone):,} ({_examples(alone)})"] if alone else []
    lines.append("protocols:")
    for protocol in document["protocols"]:
        why = protocol["why_not"]
        lines.append(f"  {protocol['name']}: {f'not possible, {why}' if why else 'possible'}")
    return "\n".join(lines)


def _examples(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


COMMANDS = (list_, info, check)
