"""Tables of sightings that need no images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

from resight.datasets.sightings import Sightings

# Examples are timed by pytest-timeout; a busy machine must not fail them one by one.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(name="table")
def table_fixture() -> Callable[..., Sightings]:
    """Build a table from rows of (path, person, camera[, role])."""
    return table


def table(rows: list[tuple[str, ...]], name: str = "own") -> Sightings:
    columns = list(zip(*[(*row, "")[:4] for row in rows], strict=True))
    paths, persons, cameras, roles = (np.array(column) for column in columns)
    return Sightings(paths, persons, cameras, roles=roles, name=name)


@pytest.fixture
def own() -> Callable[..., Sightings]:
    """People 0, 1, ... in cameras A, B, ... with some images each."""

    def build(n_people: int = 10, cameras: str = "AB", images: int = 1) -> Sightings:
        return table(
            [
                (f"{camera}/{person}_{image}.png", str(person), camera)
                for person in range(n_people)
                for camera in cameras
                for image in range(images)
            ]
        )

    return build


@pytest.fixture
def cuhk01() -> Sightings:
    """All file names of CUHK01, shuffled: the protocol must not depend on their order."""
    names = [(p, k) for p in range(1, 972) for k in range(1, 5)]
    order = np.random.default_rng(0).permutation(len(names))
    rows = [
        (f"campus/{p:04d}00{k}.png", str(p), "A" if k <= 2 else "B")
        for p, k in (names[i] for i in order)
    ]
    return table(rows, "cuhk01")


@pytest.fixture
def grid() -> Sightings:
    """People of GRID as its loader names them."""
    people = [
        (f"{camera}/{p:04d}_1.jpeg", str(p), camera)
        for camera in ("probe", "gallery")
        for p in range(1, 251)
    ]
    strangers = [(f"gallery/0000_{i}.jpeg", "0", "gallery", "distractor") for i in range(775)]
    return table([*people, *strangers], "grid")


@pytest.fixture
def prid2011() -> Sightings:
    """People of PRID2011 as its loader names them."""
    both = [(f"cam_{c}/{p}.png", str(p), f"cam_{c}") for c in "ab" for p in range(1, 201)]
    only_a = [(f"cam_a/{p}.png", f"a{p}", "cam_a", "junk") for p in range(201, 386)]
    only_b = [(f"cam_b/{p}.png", f"b{p}", "cam_b", "distractor") for p in range(201, 750)]
    return table([*both, *only_a, *only_b], "prid2011")
