"""The log: who did what, when, what for and concerning whom, as evidence.

Entries are a chain. The *act* of an entry (who, when, what, why) and its *subjects* (the sightings
and people it concerns) are each committed to by SHA-256 of a random salt and their JSON; the act
holds the commitment of its subjects, and

    hash of an entry = SHA-256(hash of the entry before, number, commitment of the act).

So a head (number and hash) that was exported proves every entry up to it: one that was changed,
removed or moved no longer leads there. Erasing somebody removes subjects with their salt (the act,
too, where it names them), and the commitment that stays says nothing without the salt. What was
emptied is listed by the entry of the erasing, so that emptying by hand is found as well.

Whoever may write the database can still write a new chain from the last exported head on: export
heads to somebody else, often.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from resight.errors import InputError
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine
from resight.gallery.manifest import Manifest

_PAGE = 5000  # entries read at once
# These concern nobody and say why other entries are empty: retention leaves them alone.
ERASING = ("forget", "expire", "log retention")
Numbers = tuple[list[int], list[int]]  # of entries whose subjects go, and of those that go whole


class LogRow(NamedTuple):
    """One entry as it is stored."""

    number: int
    hash: str
    commitment: str
    salt: str | None
    act: str | None
    subject_salt: str | None
    subjects: str | None


def log_head(engine: Engine) -> tuple[int, str]:
    """Return number and hash of the last entry, (0, "") before the first."""
    found = engine.ask("SELECT number, hash FROM log ORDER BY number DESC LIMIT 1")
    return (int(found[0][0]), str(found[0][1])) if found else (0, "")


def log_rows(engine: Engine, first: int = 1) -> Iterator[LogRow]:
    """Yield entries from a number on, in order."""
    query = f"SELECT * FROM log WHERE number >= ? ORDER BY number LIMIT {_PAGE}"
    while page := [LogRow(*row) for row in engine.ask(query, first)]:
        yield from page
        first = page[-1].number + 1


def write(engine: Engine, entries: Sequence[LogRow]) -> None:
    """Write entries that are part of the chain."""
    engine.many("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", entries)


@dataclass(frozen=True)
class Actor:
    """Who does something, by which way, from which address and for what purpose."""

    who: str
    via: str = "python"
    address: str = ""
    purpose: str = ""


def operator(via: str = "command line", purpose: str = "") -> Actor:
    """Return the user of the operating system."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container may have numbers only
        name = f"user {os.getuid()}"
    return Actor(name, via, purpose=purpose)


@dataclass(frozen=True)
class Entry:
    """One act, before it is part of the chain.

    `subjects` are sightings, ``query`` and ``shown`` (a query from outside is ``sha256:`` and the
    digest of its file), and ``persons``: name -> one of their sightings, by which it is seen
    whether the person was erased before the entry could be written.
    """

    by: Actor
    what: str
    facts: dict[str, Any]
    subjects: dict[str, Any]
    begin: float
    end: float = field(default_factory=time.time)

    def ids(self) -> set[str]:
        """Sightings that must exist for the subjects to be written."""
        named = (*self.subjects.get("query", ()), *self.subjects.get("shown", ()))
        anchors = self.subjects.get("persons", {}).values()
        return {key for key in (*named, *anchors) if not key.startswith("sha256:")}

    def row(self, number: int, before: str, known: set[str]) -> LogRow:
        """Make it an entry of the chain; whom it concerns is left out if anybody is gone."""
        by = {name: value for name, value in asdict(self.by).items() if value}
        act = {"what": self.what, "begin": self.begin, "end": self.end, **by, **self.facts}
        subject_salt = subjects = None
        if self.subjects and self.ids() <= known:
            subject_salt, subjects = secrets.token_hex(16), _canonical(self.subjects)
            act["subjects"] = digest(subject_salt, subjects)
        elif self.subjects:
            act["subjects"] = "erased before this was written"
        salt, text = secrets.token_hex(16), _canonical(act)
        commitment = digest(salt, text)
        hashed = digest(before, str(number), commitment)
        return LogRow(number, hashed, commitment, salt, text, subject_salt, subjects)


def append(engine: Engine, entries: Sequence[Entry]) -> None:
    """Write entries in one transaction, or in that which is under way."""
    with engine.transaction():
        ids = set().union(*(entry.ids() for entry in entries))
        known = engine.known(sorted(ids)) if ids else set()
        before, last = log_head(engine)
        chained = []
        for number, entry in enumerate(entries, before + 1):
            chained.append(entry.row(number, last, known))
            last = chained[-1].hash
        write(engine, chained)


def adopt(engine: Engine, journal: Iterable[tuple[str, str]]) -> None:
    """Begin the chain with the access log of 0.1; all that an entry says is its subjects."""
    entries = []
    for _, text in journal:
        old = json.loads(text)
        when, by = float(old.get("when", 0.0)), Actor(old.get("who", ""), "resight 0.1")
        entries.append(Entry(by, f"{old.get('what', '')} (0.1)", {}, {"entry": old}, when, when))
    append(engine, entries)


class Writer:
    """Writes entries of many threads; those that come while others are written share a commit.

    It has a connection of its own, so that searches go on while the disk is waited for.
    """

    def __init__(self, uri: str) -> None:
        self._engine = connect(uri)
        self.close = self._engine.close
        self._writing = threading.Lock()
        self._waiting: deque[tuple[Entry, list[Exception | None]]] = deque()

    def write(self, entry: Entry) -> None:
        """Write an entry, durable on return; all who share a commit hear of its failure."""
        outcome: list[Exception | None] = []  # filled by whichever thread writes
        self._waiting.append((entry, outcome))
        with self._writing:
            if not outcome:
                batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
                error = None
                try:
                    self.write_all([entry for entry, _ in batch])
                except Exception as failure:
                    error = failure
                for _, told in batch:
                    told.append(error)
        if outcome[0] is not None:
            raise outcome[0]

    def write_all(self, entries: list[Entry]) -> list[None]:
        """Write some entries at once."""
        append(self._engine, entries)
        return [None] * len(entries)


def latest(engine: Engine, n: int) -> list[dict[str, Any]]:
    """Return the last entries in plain data, oldest first."""
    entries = []
    for row in log_rows(engine, max(1, log_head(engine)[0] - n + 1)):
        act = json.loads(row.act or '{"what": "erased"}')
        act.pop("subjects", None)
        entries.append({"number": row.number, **act, **json.loads(row.subjects or "{}")})
    return entries


@dataclass(frozen=True)
class Verified:
    """What the chain says: where it ends, how much was erased, and what is wrong."""

    entries: int
    erased: int
    head: str
    problems: list[str]


def verify(rows: Iterable[LogRow], head: str = "") -> Verified:
    """Follow the chain from its first entry, through an exported head if one is given."""
    found = re.fullmatch(r"(\d{1,9}):([0-9a-f]{64})", head.strip() or f"0:{'0' * 64}")
    if found is None:
        raise InputError(
            f"{head!r} is no head of a log; expected NUMBER:HASH as `resight gallery log` prints it"
        )
    wanted, number, last = int(found[1]), 0, ""
    problems: list[str] = []
    emptied: set[tuple[int, bool]] = set()  # entries, and whether the act is gone, too
    excused: set[tuple[int, bool]] = set()  # as the entries of erasing say
    for row in rows:
        number += 1
        if row.number != number:
            problems.append(f"entry {number} is missing (next is {row.number})")
            number = row.number
        if row.hash != digest(last, str(row.number), row.commitment):
            problems.append(f"entry {number} does not follow from the one before it")
        last = row.hash
        whole = row.act is None or digest(row.salt or "", row.act) == row.commitment
        act = json.loads(row.act or "{}") if whole else {}
        if not whole:
            problems.append(f"entry {number} was changed")
        elif row.subjects and digest(row.subject_salt or "", row.subjects) != act.get("subjects"):
            problems.append(f"entry {number}: whom it concerns was changed")
        if row.act is None or (row.subjects is None and len(act.get("subjects", "")) == 64):
            emptied.add((number, row.act is None))
        if act.get("what") in ERASING:
            for key, gone in (("emptied_subjects", (False,)), ("emptied_acts", (False, True))):
                numbers = (n for a, b in act[key] for n in range(a, b + 1))
                excused.update((n, both) for n in numbers for both in gone)
        if number == wanted and row.hash != found[2]:
            problems.append(f"entry {number} is not the one of the exported head")
    if wanted > number:
        problems.append(f"the log ends at {number}; the exported head is entry {wanted}")
    unsaid = sorted(emptied - excused)
    problems += [f"entry {n} was emptied, and no erasing says so" for n, _ in unsaid]
    return Verified(number, len(emptied), f"{number}:{last}", problems)


def names(text: str, ids: set[str], person: str) -> bool:
    """Whether a JSON text is about any of these sightings or this person."""
    if not ids.isdisjoint(re.findall(r"\w+", text)):
        return True
    return bool(person) and person in {value.strip() for value in _texts(json.loads(text))}


def concerned(engine: Engine, ids: set[str], person: str) -> Numbers:
    """Return numbers of entries whose subjects, and of those whose act names somebody."""
    subjects, acts = [], []
    for row in log_rows(engine):
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
        values = "UPDATE log SET subject_salt = NULL, subjects = NULL{} WHERE number = ?"
        engine.many(values.format(""), [(number,) for number in subjects])
        engine.many(values.format(", salt = NULL, act = NULL"), [(number,) for number in acts])
        append(engine, [Entry(by, what, facts, {}, time.time())])


def expire_log(engine: Engine, by: Actor, now: float | None = None) -> int:
    """Empty entries that are older than the log's retention; return how many."""
    days = Manifest.read(engine).log_days
    if days is None:
        return 0
    limit = (time.time() if now is None else now) - 86_400.0 * days
    with engine.transaction():
        read = ((row.number, json.loads(row.act)) for row in log_rows(engine) if row.act)
        acts = [n for n, act in read if act["end"] < limit and act["what"] not in ERASING]
        if acts:
            empty(engine, by, "log retention", ([], acts))
    if acts:
        engine.purge([], only=["log"])
    return len(acts)


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


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(*parts: str) -> str:
    """Return SHA-256 of some lines, in hexadecimal digits."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
