"""Who is who: labels given with the sightings, and a journal of what was taught on top of them.

The journal is never rewritten, except that erased sightings leave it; an undo is an entry too. The
persons are its fold, oldest entry first: "same" and "merge" join sightings (and what they were
joined to), "split" and "detach" take sightings out of their person, "different" keeps apart.
Entries of one act share a key, so that they are undone together.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from resight.errors import InputError, unknown_name
from resight.gallery.filters import Texts
from resight.times import show
from resight.validation import check_name, parse_json

Kind = Literal[
    "same", "different", "unsure", "name", "merge", "split", "detach", "cover", "undo", "confirm"
]
Verdict = Literal["same", "different", "waiting"]
_ABOUT_ENTRIES = ("undo", "confirm")  # `a` is the key of another entry
_OF_ONE = ("name", "cover")
_JOINING = ("same", "merge")
_MOVING = ("split", "detach")


def gone(sighting: str) -> InputError:
    """Say that there is no such sighting."""
    return InputError(f"no sighting {sighting!r} in this gallery; it may have been removed")


@dataclass(frozen=True)
class Entry:
    """One thing that somebody taught.

    "same": all the sightings show one person, called `person` if that is given. "different": `a`
    shows another person than each of the others. "unsure": somebody looked at them and could not
    tell. "name": `a` is called `person`. "merge": the people of `a` and `b` are one, called
    `person`. "split": all but `a` are a new person called `person`. "detach": all but `a` are
    unknown again, and not the person of `a`; with both, `a` is empty if no sighting stays. "cover":
    `a` is the picture of its person. "undo" and "confirm" name the entry they are about in `a`.
    With `needs_second` it counts only once somebody else has confirmed it.
    """

    kind: Kind
    a: str
    b: str = ""
    person: str = ""
    who: str = ""
    when: float = field(default_factory=time.time)
    key: str = field(default_factory=lambda: secrets.token_hex(8))
    needs_second: bool = False
    more: tuple[str, ...] = ()

    @staticmethod
    def of(kind: Kind, a: str, others: Sequence[str], person: str = "") -> Entry:
        """Make one about a sighting and any number of others."""
        return Entry(kind, a, "".join(others[:1]), person, more=tuple(others[1:]))

    @property
    def sightings(self) -> list[str]:
        """All sightings that it is about."""
        return [] if self.kind in _ABOUT_ENTRIES else [*filter(None, (self.a, self.b)), *self.more]

    @property
    def others(self) -> list[str]:
        """The sightings besides `a`."""
        return [*filter(None, (self.b,)), *self.more]

    def among(self, known: Container[str]) -> Entry | None:
        """Return what is left of it if only these sightings exist; None if it says nothing then."""
        left = [one for one in self.sightings if one in known]
        if self.kind in _ABOUT_ENTRIES or len(left) == len(self.sightings):
            return self
        if self.kind in (*_JOINING, "unsure"):
            a, *others = left or [""]
            if self.person and a and not others:
                return replace(self, kind="name", a=a, b="", more=())
            says = bool(others)
        else:
            a, others = self.a if self.a in known else "", [one for one in left if one != self.a]
            says = bool(others) and (bool(a) or self.kind in _MOVING)
        return replace(self, a=a, b="".join(others[:1]), more=tuple(others[1:])) if says else None

    def concerns(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return what the log says of it: the entry, and whom it concerns."""
        if self.kind == "undo":
            return {"answer": self.a}, {}
        anchor = self.b if self.kind in _MOVING else self.a
        persons = {"persons": {self.person: anchor}} if self.person else {}
        return {"answer": self.key}, {"query": self.sightings, **persons}

    def told(self) -> str:
        """Say who answered what, and when."""
        return f"{self.who or 'somebody'} said {self.kind!r} on {show(self.when)}"

    def dump(self) -> str:
        """Write as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def load(text: str) -> Entry:
        """Read what `dump` wrote, also what earlier versions wrote."""
        values = parse_json(text)
        return Entry(**values | {"more": tuple(values.get("more", ()))})


class Labels:
    """The persons of all sightings after everything that was taught.

    `persons` are the labels that the sightings `ids` came with (empty = unknown). The journal is in
    order; of entries about sightings that no longer exist, the rest counts.
    """

    def __init__(self, ids: Texts, persons: Texts, journal: Sequence[Entry]) -> None:
        self._given: dict[str, str] = dict(zip(ids.tolist(), persons.tolist(), strict=True))
        self.journal = list(journal)
        self._sort_out()
        # A sighting is a node of a forest; one that was taken out of its person gets a new node.
        self._node: dict[str, str] = {}
        self._parent: dict[str, str] = {}
        self._join_given()
        places = [(self._apply(entry), entry) for entry in self.active]
        named = [(self._root(node), e.person.strip()) for node, e in places if e.person.strip()]
        self._explicit = dict(named)  # root -> how it was called last
        matched = (self._root(node) for node, entry in places if entry.kind in _JOINING)
        self._matched = list(dict.fromkeys(matched))  # roots, where "same" was said first
        self._roots = {key: self._root(self._node.get(key, key)) for key in self._given}
        self._names = self._name_groups()
        self._covers = {self._roots[e.a]: e.a for e in self.active if e.kind == "cover"}
        self._apart: dict[frozenset[str], Entry] = {}
        for entry in self.active:
            if entry.kind == "different" or (entry.kind in _MOVING and entry.a):
                for other in entry.others:
                    self._apart[self._pair(entry.a, other)] = entry

    def _sort_out(self) -> None:
        """Find what counts, in order, and what waits for a second person."""
        undone = {entry.a for entry in self.journal if entry.kind == "undo"}
        self.active: list[Entry] = []
        waiting: dict[str, Entry] = {}
        for entry in self.journal:
            left = None if entry.key in undone else entry.among(self._given)
            if entry.kind == "confirm" and left is not None:
                confirmed = waiting.pop(entry.a, None)
                self.active += [] if confirmed is None else [confirmed]
            elif left is not None and left.needs_second:
                waiting[left.key] = left
            elif left is not None and left.kind != "undo":
                self.active.append(left)
        self.waiting = list(waiting.values())

    def _apply(self, entry: Entry) -> str:
        """Join or move sightings; return the node that the entry is about."""
        for one in entry.others:
            if entry.kind in _JOINING:
                nodes = (self._node.get(key, key) for key in (entry.a, one))
                first, second = sorted(map(self._root, nodes))
                self._parent[second] = first
            elif entry.kind in _MOVING:
                place = entry.b if entry.kind == "split" else one
                self._node[one] = f"{place}/{entry.key}"
        about = entry.b if entry.kind in _MOVING else entry.a
        return self._node.get(about, about)

    def person(self, sighting: str) -> str:
        """Return the person of a sighting, empty if unknown."""
        return self._names.get(self._roots.get(sighting, ""), "")

    def persons(self, ids: Iterable[str]) -> Texts:
        """Return the persons of many sightings."""
        return np.array([self.person(sighting) for sighting in ids], dtype=str)

    def taught(self) -> set[str]:
        """Persons known from teaching alone: nobody came with their label."""
        given = {self._roots[key] for key, _ in self._labelled()}
        return {self._names[root] for root in {*self._matched} & {*self._names} - given}

    def cover(self, sighting: str) -> str:
        """Return the sighting that was chosen to show the person of this one, empty if none was."""
        return self._covers.get(self._roots[sighting], "")

    def differing(self, a: str, b: str) -> Entry | None:
        """Return the answer by which two sightings show different people, None if there is none."""
        return self._apart.get(self._pair(a, b))

    def apart(self) -> list[tuple[str, str]]:
        """List pairs of sightings said to show different people; others follow from these."""
        return [(e.a, other) for e in dict.fromkeys(self._apart.values()) for other in e.others]

    def unsure(self) -> set[frozenset[str]]:
        """Return the sets of sightings that somebody looked at and could not tell."""
        return {frozenset(e.sightings) for e in self.active if e.kind == "unsure"}

    def verdict(self, a: str, b: str) -> Verdict | None:
        """Say what is known about two sightings."""
        if self.person(a) and self._roots[a] == self._roots[b]:
            return "same"
        if self.differing(a, b) or (self.person(a) and self.person(b)):
            return "different"
        return "waiting" if any({a, b} <= {*e.sightings} for e in self.waiting) else None

    def second(self, entry: Entry) -> Entry:
        """Turn a match into the confirmation of what somebody else said, or into what waits."""
        if entry.kind not in _JOINING:
            return entry
        for first in self.waiting:
            if {*first.sightings} == {*entry.sightings}:
                if first.who == entry.who:
                    raise InputError("you said so already; another person has to confirm it")
                return Entry("confirm", first.key, who=entry.who)
        return replace(entry, needs_second=True)

    @property
    def last(self) -> str:
        """The key of the last entry, empty before the first."""
        return self.journal[-1].key if self.journal else ""

    def since(self, key: str) -> list[Entry]:
        """Return the entries after the last one with a key; all, if it is not there any longer."""
        places = [place for place, entry in enumerate(self.journal) if entry.key == key]
        return self.journal[places[-1] + 1 if places else 0 :]

    def check(self, entry: Entry) -> None:
        """Refuse an entry that contradicts what is known, saying what to undo."""
        if entry.kind not in get_args(Kind):
            raise unknown_name("kind of answer", str(entry.kind), get_args(Kind))
        for text in (entry.a, entry.b, entry.person, entry.who, entry.key, *entry.more):
            check_name(text, "text of an answer")
        if entry.kind == "undo":
            return self._check_undo(entry)
        if entry.kind == "confirm":  # `second` has found what it is about
            return None
        for sighting in entry.sightings:
            if sighting not in self._given:
                raise gone(sighting)
        if len({*entry.sightings}) < len(entry.sightings):
            raise InputError("cannot compare a sighting with itself; choose another one")
        if len(entry.sightings) < 2 and entry.kind not in (*_OF_ONE, *_MOVING):
            raise InputError(f"{entry.kind!r} needs two sightings; choose another one")
        if entry.kind in _JOINING:
            self._check_join(entry)
        elif entry.kind == "different":
            for other in entry.others:
                if self.verdict(entry.a, other) == "same":
                    raise InputError(
                        f"both are already {self.person(entry.a)!r}; undo that match first"
                    )
        if entry.person or entry.kind in ("name", "merge", "split"):
            self._check_name(entry)
        return None

    def _check_join(self, entry: Entry) -> None:
        """Refuse to join what was said to be different, and (but for a merge) two known people."""
        roots = {self._roots[one]: one for one in entry.sightings}
        for a, b in combinations(roots.values(), 2):
            said = self.differing(a, b)
            if said is not None or (entry.kind == "same" and self.person(a) and self.person(b)):
                reason = "undo that first" if said else "merge them if they are one person"
                raise InputError(
                    f"these two are already marked as different people ({self.person(a) or a} and "
                    f"{self.person(b) or b}{f': {said.told()}' if said else ''}); {reason}"
                )

    def _check_undo(self, entry: Entry) -> None:
        undone = [e for e in (*self.active, *self.waiting) if e.key == entry.a]
        if not undone:
            raise InputError("nothing to undo")
        moved = {one for e in undone if e.kind in _MOVING for one in e.others}
        for later in self.since(entry.a) if moved else ():
            if later in self.active and later.kind in _JOINING and moved & {*later.sightings}:
                raise InputError(f"{later.told()} about these sightings since; undo that first")
        ids, persons = np.array([*self._given]), np.array([*self._given.values()])
        without = Labels(ids, persons, [*self.journal, entry])
        for name, count in Counter(without._names.values()).items():
            if count > 1:
                raise InputError(
                    f"without it two people would have the name {name!r}; rename one first"
                )

    def _check_name(self, entry: Entry) -> None:
        new = entry.person.strip()
        if not new:
            raise InputError("a name must have at least 1 character; type one")
        own = {self._roots[one] for one in entry.sightings} if entry.kind != "split" else set()
        if any(used == new and root not in own for root, used in self._names.items()):
            raise InputError(f"another person has the name {new!r}; to merge them, confirm a match")

    def _root(self, node: str) -> str:
        root = node
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while self._parent.get(node, node) != root:  # shorten the way for the next time
            self._parent[node], node = root, self._parent[node]
        return root

    def _pair(self, a: str, b: str) -> frozenset[str]:
        return frozenset((self._roots.get(a, a), self._roots.get(b, b)))

    def _labelled(self) -> list[tuple[str, str]]:
        """Return the sightings that have the person they came with."""
        return [(key, p) for key, p in self._given.items() if p and key not in self._node]

    def _join_given(self) -> None:
        first: dict[str, str] = {}
        for sighting, person in self._given.items():
            if person and sighting < first.setdefault(person, sighting):
                first[person] = sighting
        self._parent |= {key: first[person] for key, person in self._given.items() if person}

    def _name_groups(self) -> dict[str, str]:
        living = {*self._roots.values()}
        given = Counter((self._roots[sighting], person) for sighting, person in self._labelled())
        # The most frequent label of a person, the first by name of several, comes last and stays.
        ordered = sorted(given, key=lambda one: one[1], reverse=True)
        names = dict(sorted(ordered, key=given.__getitem__))
        names |= {root: name for root, name in self._explicit.items() if root in living}
        # Called after the first sighting, in more letters where that of others begins like it.
        used = {*names.values()}
        for root in (one for one in self._matched if one in living and one not in names):
            called = (f"person {root[:n]}" for n in range(6, len(root) + 7))
            names[root] = next(name for name in called if name not in used)
            used.add(names[root])
        return names
