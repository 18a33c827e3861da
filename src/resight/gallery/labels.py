"""Who is who: labels given with the sightings, and a journal of what was taught on top of them.

The journal is never rewritten; an undo is an entry too. The persons are its fold: verdicts
"same" join sightings (and what they were joined to), verdicts "different" keep them apart.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError, unknown_name
from resight.validation import check_name, parse_json

Kind = Literal["same", "different", "name", "undo", "confirm"]
Verdict = Literal["same", "different", "waiting"]


@dataclass(frozen=True)
class Entry:
    """One thing that somebody taught.

    Attributes
    ----------
    kind : "same" | "different" | "name" | "undo" | "confirm"
    a, b : str
        Sightings; "name" uses `a`, "undo" and "confirm" name the entry they are about in `a`.
    person : str
        The name given by "name".
    who, when : str, float
        Who taught it and at what time.
    needs_second : bool
        Whether it counts only once somebody else has confirmed it.
    """

    kind: Kind
    a: str
    b: str = ""
    person: str = ""
    who: str = ""
    when: float = field(default_factory=time.time)
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    needs_second: bool = False

    def concerns(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return what the log says of it: the entry, and whom it concerns."""
        if self.kind == "undo":
            return {"answer": self.a}, {}
        persons = {"persons": {self.person: self.a}} if self.person else {}
        return {"answer": self.key}, {"query": [self.a, *filter(None, [self.b])], **persons}

    def dump(self) -> str:
        """Write as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def load(text: str) -> Entry:
        """Read what `dump` wrote."""
        return Entry(**parse_json(text))


class Labels:
    """The persons of all sightings after everything that was taught.

    Parameters
    ----------
    ids, persons : arrays of str
        Sightings and the labels they came with (empty = unknown).
    journal : sequence of Entry
        Oldest first. Entries about sightings that no longer exist are passed over.
    """

    def __init__(
        self, ids: NDArray[np.str_], persons: NDArray[np.str_], journal: Sequence[Entry]
    ) -> None:
        self._given = dict(zip(ids.tolist(), persons.tolist(), strict=True))
        self._parent = {key: key for key in self._given}
        self._join_given()
        undone = {entry.a for entry in journal if entry.kind == "undo"}
        confirmed = {e.a for e in journal if e.kind == "confirm" and e.key not in undone}
        about = ("undo", "confirm")
        given = [
            e for e in journal if e.kind not in about and e.key not in undone and self._exist(e)
        ]
        self.waiting = [e for e in given if e.needs_second and e.key not in confirmed]
        self.active = [e for e in given if not e.needs_second or e.key in confirmed]
        for entry in self.active:
            if entry.kind == "same":
                self._join(entry.a, entry.b)
        self._names = self._name_groups()
        self._taught = {self._root(e.a) for e in self.active if e.kind == "same"}

    def person(self, sighting: str) -> str:
        """Return the person of a sighting, empty if unknown."""
        return self._names.get(self._root(sighting), "")

    def persons(self, ids: Iterable[str]) -> NDArray[np.str_]:
        """Return the persons of many sightings."""
        return np.array([self.person(sighting) for sighting in ids], dtype=str)

    def taught(self) -> set[str]:
        """Persons known from teaching alone: nobody came with their label."""
        given = {self._root(key) for key, person in self._given.items() if person}
        return {self._names[root] for root in self._taught - given}

    def verdict(self, a: str, b: str) -> Verdict | None:
        """Say what is known about two sightings."""
        if self.person(a) and self._root(a) == self._root(b):
            return "same"
        pair = {self._root(a), self._root(b)}
        if any(
            {self._root(e.a), self._root(e.b)} == pair for e in self.active if e.kind == "different"
        ):
            return "different"
        if self.person(a) and self.person(b):
            return "different"
        return "waiting" if any({e.a, e.b} == {a, b} for e in self.waiting) else None

    def second(self, entry: Entry) -> Entry:
        """Turn "same" into the confirmation of what somebody else said, or into what waits."""
        if entry.kind != "same":
            return entry
        for first in self.waiting:
            if {first.a, first.b} == {entry.a, entry.b}:
                if first.who == entry.who:
                    raise InputError("you said so already; another person has to confirm it")
                return Entry("confirm", first.key, who=entry.who)
        return replace(entry, needs_second=True)

    def rejected(self, sighting: str) -> set[str]:
        """Sightings that somebody said are not the person of this one."""
        root, found = self._root(sighting), set()
        for entry in self.active:
            if entry.kind == "different":
                if self._root(entry.a) == root:
                    found.add(entry.b)
                if self._root(entry.b) == root:
                    found.add(entry.a)
        return found

    def check(self, entry: Entry) -> None:
        """Refuse an entry that contradicts what is known, saying what to undo."""
        if entry.kind not in get_args(Kind):
            raise unknown_name("kind of answer", str(entry.kind), get_args(Kind))
        for part in ("a", "b", "person", "who", "key"):
            check_name(getattr(entry, part), part)
        if entry.kind == "undo":
            if not any(e.key == entry.a for e in (*self.active, *self.waiting)):
                raise InputError("nothing to undo")
            return
        if entry.kind == "confirm":  # `second` has found what it is about
            return
        for sighting in (entry.a, entry.b) if entry.kind != "name" else (entry.a,):
            if sighting not in self._given:
                raise InputError(
                    f"no sighting {sighting!r} in this gallery; it may have been removed"
                )
        if entry.kind == "name":
            self._check_name(entry)
        elif entry.a == entry.b:
            raise InputError("cannot compare a sighting with itself; choose another one")
        elif entry.kind == "same" and self.verdict(entry.a, entry.b) == "different":
            raise InputError(
                "these two are already marked as different people "
                f"({self.person(entry.a) or 'unknown'} and "
                f"{self.person(entry.b) or 'unknown'}); undo that first"
            )
        elif entry.kind == "different" and self.verdict(entry.a, entry.b) == "same":
            raise InputError(f"both are already {self.person(entry.a)!r}; undo that match first")

    def _check_name(self, entry: Entry) -> None:
        name = entry.person.strip()
        if not name:
            raise InputError("a name must have at least 1 character; type one")
        holder = next((root for root, used in self._names.items() if used == name), None)
        if holder is not None and holder != self._root(entry.a):
            raise InputError(
                f"another person has the name {name!r}; to merge them, confirm a match"
            )

    def _exist(self, entry: Entry) -> bool:
        wanted = (entry.a,) if entry.kind == "name" else (entry.a, entry.b)
        return all(sighting in self._given for sighting in wanted)

    def _root(self, sighting: str) -> str:
        root = sighting
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while self._parent.get(sighting, sighting) != root:  # shorten the way for the next time
            self._parent[sighting], sighting = root, self._parent[sighting]
        return root

    def _join(self, a: str, b: str) -> None:
        first, second = sorted((self._root(a), self._root(b)))
        self._parent[second] = first

    def _join_given(self) -> None:
        first: dict[str, str] = {}
        for sighting, person in self._given.items():
            if person:
                self._join(first.setdefault(person, sighting), sighting)

    def _name_groups(self) -> dict[str, str]:
        given: dict[str, Counter[str]] = {}
        for sighting, person in self._given.items():
            if person:
                given.setdefault(self._root(sighting), Counter())[person] += 1
        # Called after the first sighting, so that another match does not rename a person.
        names = {
            self._root(e.a): f"person {self._root(e.a)[:6]}"
            for e in self.active
            if e.kind == "same"
        }
        names |= {root: min(c, key=lambda p: (-c[p], p)) for root, c in given.items()}
        names |= {self._root(e.a): e.person.strip() for e in self.active if e.kind == "name"}
        return names
