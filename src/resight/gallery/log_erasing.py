"""Emptying entries of the log: of somebody who is erased, and of the log's own retention."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from resight.gallery.engines.base import Engine
from resight.gallery.log import BEFORE_THE_CHAIN, ERASING, Actor, Entry, append
from resight.gallery.manifest import Manifest

Numbers = tuple[list[int], list[int]]  # of entries whose subjects go, and of those that go whole


def names(text: str, ids: set[str], person: str) -> bool:
    """Whether a JSON text is about any of these sightings or this person."""
    if not ids.isdisjoint(re.findall(r"\w+", text)):
        return True
    return bool(person) and person in {value.strip() for value in _texts(json.loads(text))}


def concerned(engine: Engine, ids: set[str], person: str) -> Numbers:
    """Return numbers of entries whose subjects, and of those whose act names somebody."""
    subjects, acts = [], []
    for row in engine.log_rows():
        purpose = "" if row.act is None else str(json.loads(row.act).get("purpose", ""))
        if (person and person in purpose) or names(row.act or "{}", ids, ""):
            acts.append(row.number)
        elif row.subjects is not None and names(row.subjects, ids, person):
            subjects.append(row.number)
    return subjects, acts


def empty(engine: Engine, by: Actor, what: str, found: Numbers, **facts: Any) -> None:
    """Empty entries and say so in the log, in one transaction."""
    subjects, acts = found
    facts |= {"emptied_subjects": _ranges(subjects), "emptied_acts": _ranges(acts)}
    with engine.transaction():
        engine.log_empty(subjects, acts)
        append(engine, [Entry(by, what, facts, {}, time.time())])


def expire_log(engine: Engine, by: Actor, now: float | None = None) -> int:
    """Empty entries that are older than the log's retention; return how many."""
    days = Manifest.read(engine).log_days
    if days is None:
        return 0
    limit = (time.time() if now is None else now) - 86_400.0 * days
    with engine.transaction():
        journal = [(key, json.loads(text)) for key, text in engine.read(BEFORE_THE_CHAIN)]
        old = [key for key, entry in journal if entry.get("when", 0.0) < limit]
        acts = [row.number for row in engine.log_rows() if row.act and _is_older(row.act, limit)]
        if old or acts:
            engine.strike(BEFORE_THE_CHAIN, old)
            empty(engine, by, "log retention", ([], acts), before_the_chain=len(old))
    if old or acts:
        engine.purge([], only=["log", "journal"])
    return len(old) + len(acts)


def _is_older(act: str, limit: float) -> bool:
    read = json.loads(act)
    return bool(read["end"] < limit and read["what"] not in ERASING)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, also in the JSON that 0.1 wrote inside of texts."""
    if isinstance(value, str):
        yield value
        with suppress(ValueError):  # a name may begin like that
            yield from _texts(json.loads(value)) if value.startswith("{") else ()
    elif isinstance(value, dict | list):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(part)


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Write numbers in order as ranges: 1, 2, 3, 7 as [1, 3], [7, 7]."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    listed = [[number for _, number in run] for _, run in runs]
    return [[run[0], run[-1]] for run in listed]
