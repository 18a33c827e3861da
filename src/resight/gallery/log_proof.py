"""Proving the log: that the chain is whole and leads through an exported head."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
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
    problems += [
        f"entry {n} was emptied, and no erasing says so" for n, _ in sorted(emptied - excused)
    ]
    return Verified(number, len(emptied), f"{number}:{last}", problems)
