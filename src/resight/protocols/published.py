"""The protocols of published datasets, as the k-XQDA paper measures them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath

import numpy as np

from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.protocols.committed import committed_splits
from resight.protocols.split import Protocol, Split, shown
from resight.protocols.views import halves, people_seen_twice, two_view

_N_SPLITS = 10


def cuhk01_single_shot(sightings: Sightings) -> Protocol:
    """486 people train with all their pictures; 485 are tested with one picture a camera."""
    pictures = _cuhk01_pictures(sightings)
    splits = []
    for people in committed_splits("cuhk01-single-shot"):
        whole = two_view(sightings, people.train, people.test, ("A", "B"))
        query, gallery = (
            np.array([pictures[key] for key in zip(people.test, numbers, strict=True)])
            for numbers in (people.query_pictures, people.gallery_pictures)
        )
        splits.append(Split(whole.train, query, gallery))
    return Protocol(
        "cuhk01-single-shot",
        tuple(splits),
        description="CUHK01, the paper authors' 10 splits: 486 training people with 2 + 2 images, "
        "485 test people with one query (camera A) and one gallery image (camera B)",
    )


def cuhk01_multi_shot(sightings: Sightings) -> Protocol:
    """485 people train, 486 are tested; two people score the sum of their four distances."""
    _cuhk01_pictures(sightings)
    return Protocol(
        "cuhk01-multi-shot",
        _committed(sightings, "cuhk01-multi-shot", ("A", "B")),
        scoring="sum",
        description="CUHK01, the paper authors' 10 splits: 485 training people, 486 test people "
        "with all images; the score of two people is the sum of their 2 x 2 distances",
    )


def prid450s(sightings: Sightings) -> Protocol:
    """225 training and 225 test people."""
    text = "PRID450S, 10 published splits: 225 training and 225 test people"
    splits = _committed(sightings, "prid450s", ("A", "B"))
    return Protocol("prid450s", splits, description=text)


def grid(sightings: Sightings) -> Protocol:
    """125 people train, 125 are looked for among themselves and 775 distractors."""
    _require_distractors(sightings, "gallery", 775)
    text = (
        "GRID, 10 published folds: 125 training people, 125 queries in a gallery of "
        "900 images with 775 distractors"
    )
    splits = _committed(sightings, "grid", ("probe", "gallery"))
    return Protocol("grid", splits, description=text)


def prid2011(sightings: Sightings) -> Protocol:
    """100 people train, 100 are looked for among themselves and 549 distractors."""
    splits = _by_rule(sightings, 200)
    _require_distractors(sightings, "cam_b", 549)
    text = (
        "PRID2011 single shot, 10 seeded random splits (there is no official file): 100 training "
        "people, 100 queries of camera A in a gallery of 649 images of camera B"
    )
    return Protocol("prid2011", splits, description=text)


def viper(sightings: Sightings) -> Protocol:
    """316 people train, 316 are tested."""
    text = "VIPeR, 10 seeded random splits: 316 training and 316 test people"
    return Protocol("viper", _by_rule(sightings, 632), description=text)


def roles(sightings: Sightings) -> Protocol:
    """Train, query and gallery as the data say themselves (Market-1501 and own tables)."""
    rows = {
        role: np.flatnonzero(sightings.roles == role)
        for role in ("train", "query", "gallery", "distractor")
    }
    absent = [role for role in ("train", "query", "gallery") if not len(rows[role])]
    if absent:
        raise InputError(
            f"{sightings.name} has no sighting with the role {' or '.join(absent)}; "
            "the protocol 'roles' needs train, query and gallery in the column role"
        )
    gallery = np.union1d(rows["gallery"], rows["distractor"])
    return Protocol(
        "roles",
        (Split(rows["train"], rows["query"], gallery),),
        cross_camera_only=True,
        description="roles as given in the data; junk and gallery sightings of the query's person "
        "in its own camera are ignored, as in Market-1501",
    )


PUBLISHED: dict[str, dict[str, Callable[[Sightings], Protocol]]] = {
    "cuhk01": {"cuhk01-single-shot": cuhk01_single_shot, "cuhk01-multi-shot": cuhk01_multi_shot},
    "grid": {"grid": grid},
    "market1501": {"roles": roles},
    "prid2011": {"prid2011": prid2011},
    "prid450s": {"prid450s": prid450s},
    "viper": {"viper": viper},
}
"""Dataset name -> its protocols, the usual one first."""


def _committed(sightings: Sightings, name: str, cameras: tuple[str, str]) -> tuple[Split, ...]:
    splits = committed_splits(name)
    return tuple(two_view(sightings, people.train, people.test, cameras) for people in splits)


def _by_rule(sightings: Sightings, expected: int) -> tuple[Split, ...]:
    people = people_seen_twice(sightings)
    if len(people) != expected:
        raise InputError(
            f"{len(people)} people of {sightings.name} appear in both cameras, expected "
            f"{expected}; the published protocol needs the complete dataset"
        )
    split = partial(two_view, sightings, cameras=("cam_a", "cam_b"))
    return tuple(split(*halves(people, number)) for number in range(_N_SPLITS))


def _cuhk01_pictures(sightings: Sightings) -> dict[tuple[str, int], int]:
    """Find the row of picture k (1 and 2 of camera A, 3 and 4 of B) of each person by file name."""
    rows: dict[tuple[str, int], int] = {}
    for row, path in enumerate(sightings.paths.tolist()):
        match = re.fullmatch(r"(\d{4})00([1-4])", PurePosixPath(path).stem)
        if match:
            rows[str(int(match[1])), int(match[2])] = row
    absent = {
        f"{person:04d}00{number}"
        for person in range(1, 972)
        for number in range(1, 5)
        if (str(person), number) not in rows
    }
    if absent:
        raise InputError(
            f"{len(absent)} of 3884 CUHK01 images are missing: {shown(absent)}; the "
            "published splits need the complete campus/ folder"
        )
    return rows


def _require_distractors(sightings: Sightings, camera: str, expected: int) -> None:
    found = int(np.sum((sightings.roles == "distractor") & (sightings.cameras == camera)))
    if found != expected:
        raise InputError(
            f"{found} distractors in camera {camera!r} of {sightings.name}, expected {expected}; "
            "the published protocol needs the complete gallery"
        )
