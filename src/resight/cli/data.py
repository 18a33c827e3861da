"""``resight data``: which datasets are known, what a folder holds, what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resight.cli._common import print_json, say, verb

if TYPE_CHECKING:
    from resight.datasets import Sightings

app = verb("List the known datasets; describe and check folders of images.")

_Path = Annotated[str, typer.Argument(help="A folder, a CSV table, or the name of a dataset.")]
_Root = Annotated[
    str | None, typer.Option("--root", help="Where a dataset given by name lies.", metavar="DIR")
]
_Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
_SHOWN = 10  # examples printed of a long list; --json has all


@app.command("list")
def list_(json: _Json = False) -> None:
    """List the datasets that resight can read."""
    from resight.datasets import DATASETS

    if json:
        facts = ("name", "title", "summary", "licence", "citation", "people", "images")
        known = [
            {fact: getattr(dataset, fact) for fact in facts} | {"layouts": list(dataset.layouts)}
            for dataset in DATASETS.values()
        ]
        print_json({"schema": "resight.datasets/1", "datasets": known})
        return
    for dataset in DATASETS.values():
        print(
            f"{dataset.name}: {dataset.title}, {dataset.people:,} people, {dataset.images:,} images"
        )
        print(f"  {dataset.summary}")
        print(f"  layout: {' or '.join(dataset.layouts)}")
        print(f"  licence: {dataset.licence}")
        print(f"  {dataset.citation}\n")
    from resight.datasets.folders import LAYOUTS

    print(f"your own data: {LAYOUTS}")


@app.command()
def info(path: _Path, root: _Root = None, json: _Json = False) -> None:
    """Count people, cameras and images; tell which protocols are possible."""
    from resight.datasets import load

    sightings = load(path, root)
    document = _described(sightings)
    if json:
        print_json({"schema": "resight.data/1", **document})
    else:
        _print_info(document)


@app.command()
def check(path: _Path, root: _Root = None, json: _Json = False) -> None:
    """Read every file; list what is unreadable, duplicate or in the way of an evaluation.

    The exit code is 1 if anything has to be changed before the data can be used.
    """
    from resight.datasets import fingerprint, load
    from resight.datasets.inspection import check_files

    sightings = load(path, root)
    document = _described(sightings)
    troubles = check_files(sightings)
    document |= {
        "fingerprint": fingerprint(sightings),
        "unreadable": [{"path": p, "reason": why} for p, why in troubles.unreadable.items()],
        "duplicates": [list(group) for group in troubles.duplicates],
        "conflicts": [list(group) for group in troubles.conflicts],
    }
    document["problems"] = _problems(document)
    document["notes"] = _notes(document, sightings)
    if json:
        print_json({"schema": "resight.data/1", **document})
    else:
        _print_info(document)
        _print_check(document)
    if document["problems"]:
        raise typer.Exit(1)


@app.command()
def cut(
    table: Annotated[str, typer.Argument(help="A CSV table with the columns x, y, w, h.")],
    folder: Annotated[str, typer.Argument(help="Where the crops go: a new folder.")],
    root: _Root = None,
    json: _Json = False,
) -> None:
    """Cut boxes in larger pictures out into crops; the new folder can be used everywhere.

    The exit code is 1 if some could not be cut; they are listed and the rest is written.
    """
    from resight.datasets import load
    from resight.datasets.cutting import cut_boxes

    done = cut_boxes(load(table, root), folder)
    failures = [{"row": row + 1, "reason": why} for row, why in done.failures.items()]
    if json:
        document = {"folder": folder, "crops": len(done.sightings), "failures": failures}
        print_json({"schema": "resight.cut/1", **document})
    else:
        print(f"{len(done.sightings):,} crops in {folder}")
    for failure in failures[:_SHOWN]:
        say(f"not cut: row {failure['row']}: {failure['reason']}")
    if failures:
        raise typer.Exit(1)


def _described(sightings: Sightings) -> dict[str, Any]:
    from resight.datasets.inspection import overview
    from resight.protocols import possible

    counts = asdict(overview(sightings))
    fewest, middle, most = counts.pop("per_person_and_camera")
    return {
        "name": sightings.name,
        **counts,
        "images_per_person_and_camera": {"min": fewest, "median": middle, "max": most},
        "protocols": [{"name": name, "why_not": why} for name, why in possible(sightings)],
    }


def _problems(document: dict[str, Any]) -> list[str]:
    """List what has to be changed before the data can be used."""
    found = []
    if document["unreadable"]:
        found.append(f"{len(document['unreadable'])} unreadable files: repair or remove them")
    if document["conflicts"]:
        count = len(document["conflicts"])
        found.append(f"{count} pictures are labelled as several people: keep the right one")
    if all(protocol["why_not"] for protocol in document["protocols"]):
        found.append("no evaluation is possible: see the reasons beside the protocols")
    return found


def _notes(document: dict[str, Any], sightings: Sightings) -> list[str]:
    """List what is worth knowing but does no harm."""
    from resight.datasets import DATASETS
    from resight.datasets._walk import other_files_below

    found = []
    harmless = len(document["duplicates"]) - len(document["conflicts"])
    if harmless:
        found.append(f"{harmless} pictures of a person are there more than once")
    if document["one_camera_only"]:
        count = len(document["one_camera_only"])
        found.append(f"{count:,} people are seen by one camera only: they cannot be queries")
    expected = DATASETS[sightings.name].images if sightings.name in DATASETS else None
    if expected is not None and expected != len(sightings):
        found.append(f"a complete copy has {expected:,} images, this one {len(sightings):,}")
    ignored = [p for p in other_files_below(Path(sightings.root)) if p.name != "sightings.csv"]
    if ignored:
        found.append(f"{len(ignored)} files are no images and were ignored, such as {ignored[0]}")
    return found


def _print_info(document: dict[str, Any]) -> None:
    print(f"{document['name']}: {document['images']:,} images, {document['people']:,} people")
    for name, word in (("unknown", "of unknown people"), ("distractors", "of distractors"),
                       ("junk", "of junk")):  # fmt: skip
        if document[name]:
            print(f"  {document[name]:,} images {word}")
    for camera, count in document["cameras"].items():
        print(f"  camera {camera}: {count['images']:,} images, {count['people']:,} people")
    spread = document["images_per_person_and_camera"]
    print(
        f"  images per person and camera: {spread['min']} to {spread['max']}, "
        f"median {spread['median']:g}"
    )
    alone = document["one_camera_only"]
    if alone:
        print(f"  seen by one camera only: {len(alone):,} ({_examples(alone)})")
    print("protocols:")
    for protocol in document["protocols"]:
        why = protocol["why_not"]
        print(f"  {protocol['name']}: {'possible' if why is None else 'not possible, ' + why}")


def _print_check(document: dict[str, Any]) -> None:
    for entry in document["unreadable"][:_SHOWN]:
        say(f"unreadable: {entry['path']}: {entry['reason']}")
    for group in document["conflicts"][:_SHOWN]:
        say(f"same picture, different people: {_examples(group)}")
    for note in document["notes"]:
        print(f"note: {note}")
    for problem in document["problems"]:
        print(f"problem: {problem}")
    print(f"fingerprint: {document['fingerprint']}")
    if not document["problems"]:
        print("nothing to change")


def _examples(texts: Sequence[str]) -> str:
    more = ", ..." if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
