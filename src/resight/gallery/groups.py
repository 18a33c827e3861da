"""Groups of unknown sightings that seem to show one person each, to be accepted with one click.

They are computed by a job (see `jobs`) and kept in the gallery with what they were computed from,
never on a request. Reading them leaves out what was answered since.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from resight._files import digest_of
from resight.errors import ConflictError, InputError
from resight.gallery.engines.base import Engine
from resight.gallery.gallery import Gallery
from resight.gallery.grouping import CLOSE, Evidence, Units, clusters
from resight.gallery.labels import Entry
from resight.gallery.log import Actor
from resight.gallery.manifest import GROUPS
from resight.gallery.view import View
from resight.validation import parse_json

_PROPOSED = 50  # sightings that nothing looks like
_POOL = 400  # unknown sightings among which these are sought
_PAUSE = 10.0  # groups are computed again after at least so many times what it takes
BY_EVIDENCE = "calibrated evidence of pairs, joined while its mean favours one person"
BY_DISTANCE = (
    f"distances below {CLOSE:g} of the median, because the model is not calibrated: few groups, "
    "but safe ones"
)


@dataclass(frozen=True)
class Group:
    """Sightings that seem to show one person.

    `sure` is the probability that the sighting that fits least shows the person of the others;
    without calibration it only orders the groups.
    """

    key: str
    sightings: list[str]
    sure: float


@dataclass(frozen=True)
class Groups:
    """All groups, surest first, with what they were computed from."""

    model: str
    total: int  # sightings of the gallery
    last: str  # key of the last answer
    rule: str  # in words, how they were found
    groups: list[Group]
    farthest: list[str]  # unknown sightings that nothing looks like (see `propose`)
    when: float = field(default_factory=time.time)
    seconds: float = 0.0

    @staticmethod
    def read(engine: Engine) -> Groups | None:
        """Read those that are kept, None before the first."""
        content = engine.get(GROUPS)
        return None if content is None else _parsed(content)

    def store(self, engine: Engine) -> None:
        """Keep them."""
        engine.put({GROUPS: json.dumps(asdict(self)).encode()}, searched=False)

    def stale(self, view: View) -> bool:
        """Whether they are worth computing again: another model, more sightings, more answers."""
        now = (view.manifest.current.fingerprint, len(view.table), view.labels.last)
        changed = now != (self.model, self.total, self.last)
        return changed and time.time() > self.when + _PAUSE * self.seconds


@lru_cache(maxsize=4)  # every visit reads the same
def _parsed(content: bytes) -> Groups:
    values: dict[str, Any] = parse_json(content)
    return Groups(**values | {"groups": [Group(**one) for one in values["groups"]]})


def group(gallery: Gallery, on_step: Callable[[str, float], None] | None = None) -> Groups:
    """Group the unknown sightings and keep the result."""
    say, begin, view = on_step or (lambda words, share: None), time.time(), gallery.view
    found = find_groups(view, lambda share: say("comparing sightings", 0.9 * share))
    say("looking for sightings that nothing looks like", 0.9)
    kept = Groups(
        view.manifest.current.fingerprint,
        len(view.table),
        view.labels.last,
        BY_DISTANCE if view.calibration is None else BY_EVIDENCE,
        found,
        propose(view, _PROPOSED),
        seconds=time.time() - begin,
    )
    kept.store(gallery.engine)
    return kept


def find_groups(view: View, on_step: Callable[[float], None] = lambda share: None) -> list[Group]:
    """Group the unknown sightings of a view, surest first."""
    unknown = np.flatnonzero(view.persons == "")
    if len(unknown) < 2:
        return []
    if view.index is None:
        raise InputError(
            "the embeddings of this gallery are larger than the memory it may use, so its unknown "
            "sightings are not grouped; search for them instead"
        )
    tracks = view.tracks[unknown].copy()
    place = {str(key): i for i, key in enumerate(view.table.ids[unknown])}
    apart = [(place[a], place[b]) for a, b in view.labels.apart() if a in place and b in place]
    for a, b in apart:
        if tracks[a] == tracks[b]:  # somebody saw two people in it: its sightings stand alone
            own = np.flatnonzero(tracks == tracks[a])
            tracks[own] = tracks.min(initial=0) - 1 - np.arange(len(own))
    units = np.unique(tracks, return_inverse=True)[1]
    cameras = np.unique(view.table.cameras[unknown], return_inverse=True)[1]
    evidence = Evidence(Units.of(view.index.embeddings[unknown], units, cameras), view.calibration)
    different = [(int(units[a]), int(units[b])) for a, b in apart]
    order = np.argsort(units, kind="stable")
    members = np.split(view.table.ids[unknown][order], np.cumsum(np.bincount(units))[:-1])
    groups = []
    for rows, sure in clusters(evidence, different, on_step):
        ids = [str(one) for row in rows.tolist() for one in members[row]]
        groups.append(Group(digest_of(*sorted(ids))[:16], ids, round(sure, 4)))
    return groups


def propose(view: View, n: int) -> list[str]:
    """Choose at most `n` unknown sightings whose nearest match in another camera is farthest away.

    Nothing looks like them yet: the person's other sighting, if there is one, is one that the
    model does not recognise, and such a pair teaches what easy pairs cannot: how much a person may
    change between cameras. Labelling people at random teaches less (benchmarks/teaching.py).
    """
    if view.index is None:
        return []
    unknown = np.flatnonzero(view.persons == "")
    pool = unknown[:: max(1, len(unknown) // _POOL)][:_POOL]
    nearest = np.full(len(pool), np.inf)  # stays infinite where there is no other camera
    for place, row in enumerate(pool.tolist()):
        [distances] = view.index.distances(view.index.embeddings[[row]])
        elsewhere = view.table.cameras != view.table.cameras[row]
        nearest[place] = distances[elsewhere].min(initial=np.inf)
    order = np.argsort(-nearest, kind="stable")
    return [str(view.table.ids[pool[i]]) for i in order if np.isfinite(nearest[i])][:n]


def open_groups(gallery: Gallery) -> Iterator[Group]:
    """Yield the groups that are kept, without what was answered since; "not sure" comes last."""
    kept, view = Groups.read(gallery.engine), gallery.view
    rows, labels = view.rows, view.labels
    unsure, doubted = labels.unsure(), []
    for one in kept.groups if kept is not None else ():
        ids = [key for key in one.sightings if key in rows and not labels.person(key)]
        if labels.active:
            ids = [key for key in ids if labels.differing(ids[0], key) is None]
        if len(ids) < 2:
            continue
        left = Group(one.key, ids, one.sure)
        if unsure and frozenset(ids) in unsure:
            doubted.append(left)
        else:
            yield left
    yield from doubted


def accept(
    gallery: Gallery,
    sightings: Sequence[str],
    *,
    dropped: Sequence[str] = (),
    name: str = "",
    by: Actor | None = None,
) -> list[Entry]:
    """Make unknown sightings one person, called `name`, or add them to the person of that name.

    Those `dropped` from the group show somebody else.
    """

    def made(view: View) -> list[Entry]:
        if not sightings:
            raise InputError("no sighting is left of the group; keep at least one")
        for key in sightings:
            if view.labels.person(key):
                raise ConflictError(
                    f"somebody said meanwhile that one of these is {view.labels.person(key)!r}. "
                    "Nothing was written; look at the next group"
                )
        given, called = list(sightings), name.strip()
        if called in view.named:
            given, called = [view.people.ids(called)[0], *given], ""
        entries = [Entry.of("same" if len(given) > 1 else "name", given[0], given[1:], called)]
        return entries + ([Entry.of("different", given[0], dropped)] if dropped else [])

    return gallery.answer(made, by)


def not_sure(gallery: Gallery, sightings: Sequence[str], *, by: Actor | None = None) -> Entry:
    """Say that one cannot tell whether sightings show one person; they are shown last then."""
    first = "".join(sightings[:1])
    return gallery.answer(lambda view: [Entry.of("unsure", first, sightings[1:])], by)[0]
