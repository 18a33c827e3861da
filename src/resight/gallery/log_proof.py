"""Proving the log: that the chain is whole and leads through an exported head."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resight.errors import InputError
from resight.gallery.engines.ledger import LogRow
from resight.gallery.log import ERASING, digest


@dataclass(frozen=True)
class Verified:
    """What the chain says: where it ends, how much was erased, and what is wrong."""

    entries: int
    erased: int
    head: str
    problems: list[str]


def verify(rows: Iterable[LogRow], head: str = "") -> Verified:
    """Follow the chain from its first entry, through an exported head if one is given."""
    wanted, expected = _parsed(head)
    problems: list[str] = []
    emptied: list[tuple[int, bool]] = []
    excused: dict[bool, set[int]] = {False: set(), True: set()}  # of subjects, of acts
    number, last = 0, ""
    for row in rows:
        number += 1
        if row.number != number:
            problems.append(f"entry {number} is missing (next is {row.number})")
            number = row.number
        if row.hash != digest(last, str(row.number), row.commitment):
            problems.append(f"entry {number} does not follow from the one before it")
        last = row.hash
        problems += _changed(row)
        emptied += [(number, row.act is None)] if _is_empty(row) else []
        for whole, ranges in _listed(row):
            excused[whole].update(n for a, b in ranges for n in range(a, b + 1))
        if number == wanted and row.hash != expected:
            problems.append(f"entry {number} is not the one of the exported head")
    if wanted > number:
        problems.append(f"the log ends at {number}; the exported head is entry {wanted}")
    for n, whole in emptied:
        if n not in excused[True] and (whole or n not in excused[False]):
            problems.append(f"entry {n} was emptied, and no erasing says so")
    return Verified(number, len(emptied), f"{number}:{last}", problems)


def _changed(row: LogRow) -> list[str]:
    named = None
    if row.act is not None:
        if row.salt is None or digest(row.salt, row.act) != row.commitment:
            return [f"entry {row.number} was changed"]
        named = json.loads(row.act).get("subjects")
    if row.subjects is not None and digest(row.subject_salt or "", row.subjects) != named:
        return [f"entry {row.number}: whom it concerns was changed"]
    return []


def _is_empty(row: LogRow) -> bool:
    if row.act is None:
        return True
    return row.subjects is None and len(json.loads(row.act).get("subjects", "")) == 64


def _listed(row: LogRow) -> Iterator[tuple[bool, list[list[int]]]]:
    """Yield which entries an erasing says it emptied."""
    act = {} if row.act is None else json.loads(row.act)
    if act.get("what") in ERASING:
        yield False, act.get("emptied_subjects", [])
        yield True, act.get("emptied_acts", [])


def _parsed(head: str) -> tuple[int, str]:
    if not head:
        return 0, ""
    found = re.fullmatch(r"(\d{1,9}):([0-9a-f]{64})", head.strip())
    if found is None:
        raise InputError(
            f"{head!r} is no head of a log; expected NUMBER:HASH as `resight gallery log` prints it"
        )
    return int(found[1]), found[2]
