"""Writers, searchers and an eraser on one gallery at once, for minutes."""

from __future__ import annotations

import itertools
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.reliability import Outcome, Scale
from benchmarks.reliability.child import Child, Tell
from benchmarks.reliability.galleries import uri
from benchmarks.reliability.material import Material
from benchmarks.reliability.postgres import Server
from resight.datasets.sightings import Sightings
from resight.errors import InputError
from resight.gallery import Described, Gallery
from resight.gallery.checking import check
from resight.gallery.forgetting import forget
from resight.gallery.view import features_of

WRITERS, SEARCHERS = 4, 4
BATCH = 3  # sightings of one person, added at once
ALIVE = 40  # people a writer leaves in the gallery: beyond them it removes its oldest
COMPARED = 10  # every so many searches embeddings are computed again
PAUSE = 0.1  # seconds: on two cores, all of them still get on


TEXT = f"""## Load

{WRITERS} writers add people and remove them again, {SEARCHERS} searchers search, and one person is
forgotten every second (or as soon as the last one is erased and proved to be), all in processes of
their own on one gallery. Then what must be there is compared with what is there, and everything is
checked.
"""


def measure(scale: Scale) -> Outcome:
    """Load one engine after the other and write the table."""
    ends = []
    with tempfile.TemporaryDirectory() as name, Server() as server:
        work = Path(name)
        material = Material(work / "material")
        places = {"SQLite": str(work / "SQLite"), "PostgreSQL": server.new_place()}
        for engine, place in places.items():
            (work / engine).mkdir()
            load = _bind(_load, material, work / engine, place, engine, scale.soak)
            ends.append(Child(load, 3600).wait().end or {})
    lines = [end["result"] for end in ends if "result" in end]
    wrong = ("lost", "left over", "damaged", "errors")
    columns = ("engine", "seconds", "people added", "searches", "forgotten", *wrong)
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    rows += [f"| {' | '.join(str(line[column]) for column in columns)} |" for line in lines]
    failures = [str(end) for end in ends if "result" not in end]
    for line in lines:
        counts = {name: line[name] for name in wrong}
        if any(counts.values()):
            failures.append(f"{line['engine']}: {counts} {line['failures']}")
    return Outcome(TEXT + "\n" + "\n".join(rows), failures)


def _load(
    material: Material, work: Path, place: str, engine: str, seconds: float, tell: Tell
) -> dict[str, Any]:
    """Let all of them work on one gallery, then reckon up what must be there."""
    Gallery.create(uri(place), material.models[0]).close()
    end = time.monotonic() + seconds
    jobs: list[Callable[[Tell], Any]] = [
        lambda tell: _erase(place, end, tell),
        *(_bind(_write, number, material, work, place, end) for number in range(WRITERS)),
        *(_bind(_search, number, material, work, place, end) for number in range(SEARCHERS)),
    ]
    children = [Child(job) for job in jobs]
    while time.monotonic() < end:  # so that nobody waits until we listen
        for child in children:
            child.take(0.02)
    for child in children:
        child.wait()
    return {"engine": engine, "seconds": seconds, **_reckon(place, children)}


def _bind(job: Callable[..., Any], *arguments: Any) -> Callable[[Tell], Any]:
    return lambda tell: job(*arguments, tell)


def _reckon(place: str, children: list[Child]) -> dict[str, Any]:
    told = [item for child in children for item in child.told]
    added = {person: ids for kind, person, ids in told if kind == "added"}
    gone = {person for kind, person, _ in told if kind in ("removed", "forgotten")}
    expected = {key for person, ids in added.items() if person not in gone for key in ids}
    gallery = Gallery.open(uri(place))
    found = set(gallery.view.table.ids.tolist())
    gallery.close()
    ends = [child.end or {} for child in children]
    errors = [str(end) for end in ends if "result" not in end]
    report = check(uri(place))
    return {
        "people added": len(added),
        "searches": sum(end.get("result", 0) for end in ends[1 + WRITERS :]),
        "forgotten": sum(kind == "forgotten" for kind, _, _ in told),
        "lost": len(expected - found),
        "left over": len(found - expected),
        "damaged": len(report.problems),
        "errors": len(errors),
        "failures": [*report.problems, *errors][:5],
    }


def _write(number: int, material: Material, work: Path, place: str, end: float, tell: Tell) -> None:
    """Add people as fast as it goes, remove the oldest of them."""
    gallery = Gallery.open(uri(place))
    rng = np.random.default_rng(number)
    width = material.described.features.shape[1]
    folder = work / f"writer-{number}"
    folder.mkdir()
    alive: deque[tuple[str, list[str]]] = deque()
    for turn in itertools.count():
        if time.monotonic() > end:
            break
        names = np.array([f"{i}.png" for i in range(BATCH)])
        for name in names:
            Image.fromarray(rng.integers(0, 256, (32, 16, 3), dtype=np.uint8)).save(folder / name)
        person = f"guest-{number}-{turn}"
        cameras = np.full(BATCH, f"camera-{number}")
        times = np.float64(turn) + np.arange(BATCH) / BATCH
        some = Sightings(names, np.full(BATCH, person), cameras, times, root=folder)
        features = rng.random((BATCH, width), dtype=np.float32)
        described = Described(features, material.described.fingerprint)
        ids = gallery.add(some, described=described, batch_size=BATCH).added
        tell(["added", person, ids])
        alive.append((person, ids))
        if len(alive) > ALIVE:
            oldest, ids = alive.popleft()
            with suppress(InputError):  # the eraser was quicker
                gallery.remove(ids)
            tell(["removed", oldest, []])
        time.sleep(PAUSE)
    gallery.close()


def _search(number: int, material: Material, work: Path, place: str, end: float, tell: Tell) -> int:
    """Search for random descriptors; hits come in order, each sighting once."""
    warnings.simplefilter("error")
    gallery = Gallery.open(uri(place))
    rng = np.random.default_rng(100 + number)
    width = material.described.features.shape[1]
    searches = 0
    while time.monotonic() < end:
        query = Described(rng.random((1, width), dtype=np.float32), material.described.fingerprint)
        hits = gallery.search_described(query, 10)[0]
        distances = [hit.distance for hit in hits]
        if distances != sorted(distances) or len({hit.id for hit in hits}) != len(hits):
            raise RuntimeError(f"wrong hits: {hits}")
        if searches % COMPARED == 0:
            _compare(gallery, [hit.id for hit in hits])
        searches += 1
        time.sleep(PAUSE)
    gallery.close()
    return searches


def _compare(gallery: Gallery, ids: list[str]) -> None:
    """Embed sightings again, but for those that are gone by now."""
    view = gallery.view
    known = [key for key in ids if key in view.rows]
    found = features_of(gallery.engine, view.manifest, view.model, known)
    rows = [view.rows[key] for key in found]
    expected = view.model.embed(np.array([*found.values()])) if found else np.empty((0, 5))
    if view.index is None or not np.allclose(view.index.embeddings[rows], expected, atol=1e-4):
        raise RuntimeError("a search looked at something else than the embeddings")


def _erase(place: str, end: float, tell: Tell) -> None:
    """Forget somebody every second."""
    gallery = Gallery.open(uri(place))
    rng = np.random.default_rng(1)
    while time.monotonic() < end:
        wait = time.monotonic() + 1.0
        people = sorted(set(gallery.view.persons.tolist()))
        if people:
            person = str(rng.choice(people))
            with suppress(InputError):  # its writer was quicker and removed it
                forget(gallery, person)
                tell(["forgotten", person, []])
        time.sleep(max(0.0, wait - time.monotonic()))
    gallery.close()
