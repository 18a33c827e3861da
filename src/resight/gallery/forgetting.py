"""Erasing people and old sightings: a job that any process can finish, with proof at its end.

What is to go is written down first, together with pieces of it to look for afterwards. Everything
goes in one transaction; then the medium is cleaned and searched. Every step can be repeated, so a
job that was killed, or met a full disk, is finished by the next `forget`, `expire` or `resume`.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from resight.errors import StoreError, unknown_name
from resight.gallery import log, users
from resight.gallery import manifest as kept
from resight.gallery.engines.base import Engine
from resight.gallery.engines.scanning import Scanner, Traces, needles_of
from resight.gallery.gallery import Gallery
from resight.gallery.labels import Entry
from resight.gallery.log import Actor, operator
from resight.gallery.manifest import ERASING, Manifest
from resight.gallery.rebuilding import unfinished
from resight.times import EPOCH

_LAST = "/last"  # ends the name of the note that only the job's own traces are left to clean
_ROUNDS = 5  # a search that was under way may write an erased id into the log once more
_MOST = 400  # sightings whose images, descriptors and embeddings are looked for; ids always are
_BATCH = 32  # sightings read at once: descriptors are large


@dataclass(frozen=True)
class Forgotten:
    """What was erased, and that nothing was left when everything was searched for it."""

    person: str
    sightings: int
    labels: int
    searches: int
    models_replaced: int
    checked: str
    limits: str


@dataclass(frozen=True)
class _Job:
    """What is to be erased, and the bytes by which it would be found (as hexadecimal digits)."""

    person: str
    ids: list[str]
    needles: list[str]
    by: dict[str, str]
    labels: int = 0
    searches: int = 0
    models: int = 0
    name: str = field(default_factory=lambda: ERASING + secrets.token_hex(8))
    logged: bool = False

    def dump(self) -> bytes:
        """Write it so that the search for what it names does not find the note itself."""
        return base64.b64encode(json.dumps(asdict(self)).encode())


def forget(gallery: Gallery, person: str, by: Actor | None = None) -> Forgotten:
    """Erase a person: sightings with images and numbers, labels, taught models, and in the log.

    If anything of the person is still found then, it says so; the job stays and can be resumed.
    """
    earlier = {done.person: done for done in resume(gallery)}
    view = gallery.view
    if not person or person not in view.named:
        if person and person in earlier:
            return earlier[person]
        raise unknown_name("person", person, view.named)
    ids = view.table.ids[view.persons == person].tolist()
    return _erase(gallery.engine, person, ids, by or operator())


def expire(gallery: Gallery, now: float | None = None, by: Actor | None = None) -> int:
    """Remove sightings older than the gallery's retention; return how many.

    A sighting is as old as its time says; where times count from the start of a recording, as old
    as its stay in the gallery.
    """
    resume(gallery)
    by = by or operator()
    log.expire_log(gallery.engine, by, now)
    days = gallery.view.manifest.retention_days
    if days is None:
        return 0
    table = gallery.view.table
    moment = np.where(table.times > EPOCH, table.times, table.added)
    limit = (time.time() if now is None else now) - 86_400.0 * days
    ids = table.ids[moment < limit].tolist()
    if ids:
        _erase(gallery.engine, "", ids, by)
    return len(ids)


def resume(gallery: Gallery) -> list[Forgotten]:
    """Finish what was begun to be erased and not finished, by whatever process."""
    engine = gallery.engine
    done = []
    for name in engine.names(ERASING):
        if name.endswith(_LAST):
            engine.purge([], rewrite=True, only=["documents"])
            engine.drop([name])
        elif (note := engine.get(name)) is not None:  # nobody else finished it meanwhile
            done.append(_finish(engine, _Job(**json.loads(base64.b64decode(note)))))
    return done


def _erase(engine: Engine, person: str, ids: list[str], by: Actor) -> Forgotten:
    job = _Job(person, ids, [needle.hex() for needle in needles(engine, ids)], asdict(by))
    engine.put({job.name: job.dump()})
    return _finish(engine, job)


def needles(engine: Engine, ids: Sequence[str]) -> list[bytes]:
    """Take pieces of all that is stored of some sightings; of many, those of some of them."""
    values = _stored(engine, ids[:: max(1, len(ids) // _MOST)])
    pieces = (piece for value in values for piece in needles_of(value))
    return [*(sighting.encode() for sighting in ids), *pieces]


def _stored(engine: Engine, ids: Sequence[str]) -> Iterator[bytes]:
    """Yield every image, descriptor and embedding of some sightings."""
    for start in range(0, len(ids), _BATCH):
        some = ids[start : start + _BATCH]
        yield from engine.fetch(some, "image").values()
        yield from engine.fetch(some, "feature").values()
    known = set(ids)
    for generation in Manifest.read(engine).history:
        for keys, vectors in engine.embeddings(generation.number, generation.width):
            for row in vectors[[key in known for key in keys.tolist()]]:
                yield row.astype("<f4").tobytes()
                yield row.astype(">f4").tobytes()  # as PostgreSQL sends vectors


def _finish(engine: Engine, job: _Job) -> Forgotten:
    look_for = [bytes.fromhex(needle) for needle in job.needles]
    spellings = {job.person.encode(), json.dumps(job.person)[1:-1].encode()} - {b""}
    for _ in range(_ROUNDS):
        job = _remove(engine, job)
        places = _places(engine, job, engine.purge([*look_for, *spellings]), spellings)
        if not places:
            break
    else:
        raise StoreError(
            f"gallery {engine.uri}: after erasing, traces are left in {', '.join(places)}. Another "
            "process may be adding them again: end it, then: "
            f"resight gallery forget {engine.uri} --resume"
        )
    note, last = job.dump(), job.name + _LAST
    with engine.transaction():
        engine.drop([job.name])
        engine.put({last: b""})
    engine.purge(needles_of(note, 64), only=["documents"])
    engine.drop([last])
    checked = f"every table{'' if engine.erasing_limits else ' and file'} of the gallery"
    counts = (len(job.ids), job.labels, job.searches, job.models)
    return Forgotten(job.person, *counts, checked, engine.erasing_limits)


def _remove(engine: Engine, job: _Job) -> _Job:
    """Remove everything in one transaction, and note how much it was."""
    ids = set(job.ids)
    with engine.transaction():
        models = _replace_models(engine, ids)
        engine.remove(job.ids)
        labels = _strike_labels(engine, ids, job.person)
        engine.drop([kept.GROUPS, *_jobs_naming(engine, job.person)], searched=False)
        found = log.concerned(engine, ids, job.person)
        if job.person:
            users.drop_purposes(engine)
        if any(found) or not job.logged:
            what = "forget" if job.person else "expire"
            log.empty(engine, Actor(**job.by), what, found, sightings=len(ids))
        labels, models = job.labels + labels, job.models + models
        searches = job.searches + sum(map(len, found))
        job = replace(job, labels=labels, searches=searches, models=models, logged=True)
        engine.put({job.name: job.dump()})
    return job


def _places(engine: Engine, job: _Job, left: Traces, spellings: set[bytes]) -> list[str]:
    """Name the places that still hold something of what was erased.

    The letters of a name may occur elsewhere, and another sighting may have the same image. Where
    anything was found the medium was written anew from the rows that exist, so that such finds are
    told apart by looking at the rows.
    """
    ids = set(job.ids)
    places = ["sightings"] if ids & set(engine.table().ids.tolist()) else []
    answers = engine.read("labels")
    places += ["answers"] if any(log.names(text, ids, job.person) for _, text in answers) else []
    places += ["the log"] if any(log.concerned(engine, ids, job.person)) else []
    rest = set().union(*left.values()) - spellings
    if rest:  # without what other sightings have too: the same image was added twice
        rest -= Scanner(rest).scan(_stored(engine, engine.table().ids.tolist()))
    return places + [place for place, found in left.items() if found & rest]


def _strike_labels(engine: Engine, ids: set[str], person: str) -> int:
    """Take sightings and a name out of the answers; those that say nothing without them go."""
    entries = {key: Entry.load(text) for key, text in engine.read("labels")}
    known = {one for entry in entries.values() for one in entry.sightings} - ids
    struck, amended = [], {}
    for key, entry in entries.items():
        left = entry.among(known)
        if left is not None and person and left.person.strip() == person:
            left = None if left.kind == "name" else replace(left, person="")
        if left is None:
            struck.append(key)
        elif left != entry:
            amended[key] = left.dump()
    undone = [key for key, e in entries.items() if e.kind in ("undo", "confirm") and e.a in struck]
    engine.amend("labels", [*struck, *undone], amended)
    return len(struck) + len(amended)


def _jobs_naming(engine: Engine, person: str) -> list[str]:
    """List finished jobs that mention somebody, as by the name of a file."""
    found = {name: json.loads(engine.get(name) or b"{}") for name in engine.names(kept.JOBS)}
    ended = {name: job for name, job in found.items() if job.get("ended") and person}
    return [name for name, job in ended.items() if person in json.dumps(job, ensure_ascii=False)]


def _replace_models(engine: Engine, ids: set[str]) -> int:
    """Drop models that were taught with these sightings: a kernel model contains them.

    The model that the gallery was created with was fitted elsewhere and stays.
    """
    manifest = Manifest.read(engine)
    others = unfinished(engine)  # of a rebuild that was killed or still goes on
    taught = {n for n in (*manifest.numbers, *others) if ids & {*kept.trained_on(engine, n)}}
    tainted, pending = manifest.numbers & taught, manifest.pending
    if taught:
        clean = manifest.with_history(tuple(g for g in manifest.history if g.number not in tainted))
        begun = None if pending is None or pending.number in taught else pending
        replace(clean, pending=begun).store(engine)
    for number in taught:
        kept.drop_model(engine, number)
    candidate = engine.get(kept.CANDIDATE)
    if candidate is not None and ids & set(json.loads(candidate)["trained_on"]):
        kept.drop_candidate(engine)
    return len(tainted)
