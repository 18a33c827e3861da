"""The people of a gallery: cards, and what corrects them (rename, merge, split, detach, cover).

Every correction is an answer of the journal (see `labels`), so that it is logged and can be undone.
It carries the version of the person that was seen; if somebody changed the person since, the later
one is told who did what, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.errors import ConflictError, InputError, unknown_name
from resight.gallery.engines.base import Floats32
from resight.gallery.index import Rows
from resight.gallery.labels import Entry
from resight.gallery.log import Actor
from resight.validation import check_count

if TYPE_CHECKING:
    from resight.gallery.gallery import Gallery
    from resight.gallery.view import View

Order = Literal["name", "sightings", "seen"]
Correction = Literal["rename", "merge", "split", "detach", "cover"]
PER_PAGE = 48


@dataclass(frozen=True)
class Card:
    """A person in brief."""

    name: str
    cover: str  # the sighting that shows the person
    sightings: int
    cameras: list[str]
    last_seen: float | None  # in seconds; None where no sighting has a time
    version: str  # what a correction of this person has to carry as `seen`
    distance: float | None = None  # squared, from the person whom a merge was asked for


class People:
    """All people of a view, as arrays: names sorted, and the rows of each."""

    def __init__(self, view: View) -> None:
        self._view = view
        labelled = np.flatnonzero(view.persons != "")
        self.names, codes = np.unique(view.persons[labelled], return_inverse=True)
        self._rows = labelled[np.argsort(codes, kind="stable")]  # those of a person in a row
        self.counts = np.bincount(codes, minlength=len(self.names))
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])

    def rows(self, place: int) -> Rows:
        """Return the rows of the person at a place of `names`."""
        return self._rows[self._starts[place] : self._starts[place + 1]]

    def place(self, name: str) -> int:
        """Return the place of a person in `names`."""
        place = int(np.searchsorted(self.names, name)) if len(self.names) else 0
        if not name or place == len(self.names) or self.names[place] != name:
            raise unknown_name("person", name, self.names[max(0, place - 5) : place + 5].tolist())
        return place

    def ids(self, name: str) -> list[str]:
        """Return the sightings of a person."""
        return [str(one) for one in self._view.table.ids[self.rows(self.place(name))]]

    @cached_property
    def seen(self) -> NDArray[np.float64]:
        """When each was last seen, -inf where no sighting has a time."""
        times = np.nan_to_num(self._view.table.times[self._rows], nan=-np.inf)
        return np.maximum.reduceat(times, self._starts[:-1]) if len(times) else times

    @cached_property
    def means(self) -> Floats32 | None:
        """The mean embedding of each (n_people, r); None where they are not in memory."""
        if self._view.index is None or not len(self._rows):
            return None
        sums = np.add.reduceat(self._view.index.embeddings[self._rows], self._starts[:-1], axis=0)
        return np.asarray(sums / self.counts[:, None], np.float32)

    def card(self, place: int, distance: float | None = None) -> Card:
        """Describe the person at a place of `names`."""
        view, rows = self._view, self.rows(place)
        ids, seen = view.table.ids[rows].tolist(), float(self.seen[place])
        cover = view.labels.cover(ids[0]) or ids[0]
        cameras = sorted({*view.table.cameras[rows].tolist()})
        name, moment = str(self.names[place]), None if np.isinf(seen) else seen
        version = f"{view.labels.last}.{digest_of(name, cover, *sorted(ids))[:16]}"
        return Card(name, cover, len(ids), cameras, moment, version, distance)


def people(
    view: View, query: str = "", page: int = 1, *, per_page: int = PER_PAGE, order: Order = "name"
) -> tuple[list[Card], int]:
    """Return one page of people (a page after the last is the last), and how many there are in all.

    `query` leaves those whose name contains it, in capitals or not. Orders are names from A on,
    those with the most sightings first ("sightings") and those seen last first ("seen").
    """
    known, wanted = view.people, query.strip().casefold()
    check_count(page, "page")
    if order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))
    places = np.arange(len(known.names))
    if wanted:
        places = np.flatnonzero([wanted in name.casefold() for name in known.names.tolist()])
    if order != "name":
        values = known.counts if order == "sightings" else known.seen
        places = places[np.argsort(-values[places], kind="stable")]
    first = (min(page, max(1, -(-len(places) // per_page))) - 1) * per_page
    return [known.card(place) for place in places[first : first + per_page].tolist()], len(places)


def person(view: View, name: str) -> Card:
    """Return the card of one person."""
    return view.people.card(view.people.place(name))


def similar_people(view: View, name: str, n: int = 8) -> list[Card]:
    """Return whom one may be merged with: nearest mean embeddings first, none said to differ."""
    known = view.people
    place, means = known.place(name), known.means
    if means is None:
        return []
    near = ((means - means[place]) ** 2).sum(axis=1)  # (n_people,)
    own = str(view.table.ids[known.rows(place)[0]])
    nearest = (other for other in np.argsort(near, kind="stable").tolist() if other != place)
    firsts = ((other, str(view.table.ids[known.rows(other)[0]])) for other in nearest)
    alike = (other for other, one in firsts if view.labels.differing(own, one) is None)
    return [known.card(other, float(near[other])) for other in islice(alike, n)]


def correct(
    gallery: Gallery,
    what: Correction,
    name: str,
    sightings: Sequence[str] = (),
    *,
    new: str = "",
    other: str = "",
    seen: str = "",
    by: Actor | None = None,
) -> Entry:
    """Correct a person; `seen`, the version that was looked at, refuses one changed since.

    "rename" gives the name `new`; "merge" makes `other` and the person one, who keeps the name;
    "split" makes some sightings a new person, called `new` or after the first of them; "detach"
    says "not this person" of some: they are unknown again; "cover" chooses the one that is shown.
    """

    def made(view: View) -> Entry:
        if seen:
            _refuse_stale(view, name, seen)
        ids = view.people.ids(name)
        if what == "rename":
            return Entry("name", ids[0], person=new)
        if what == "merge":
            if name == other:
                raise InputError(f"{name!r} cannot be merged with itself; choose another person")
            return Entry("merge", ids[0], view.people.ids(other)[0], name)
        strange = [one for one in sightings if one not in {*ids}]
        if strange or not sightings:
            which = f"{strange[0]!r} is not one of {name!r}" if strange else "no sighting given"
            raise InputError(f"{which}; select some of this person's sightings")
        if what == "cover":
            if len(sightings) > 1:
                raise InputError("select one sighting for the cover")
            return Entry("cover", sightings[0])
        stay = [one for one in ids if one not in {*sightings}]
        if what == "detach":
            return Entry.of("detach", "".join(stay[:1]), sightings)
        if not stay:
            raise InputError(f"these are all sightings of {name!r}; rename the person instead")
        return Entry.of("split", stay[0], sightings, new.strip() or f"person {sightings[0][:12]}")

    if what not in get_args(Correction):
        raise unknown_name("correction", what, get_args(Correction))
    return gallery.answer(lambda view: [made(view)], by)[0]


def _refuse_stale(view: View, name: str, seen: str) -> None:
    """Refuse a correction of somebody who was changed since, saying who changed what."""
    here = name in view.named
    key, _, state = seen.partition(".")
    if here and person(view, name).version.partition(".")[2] == state:
        return
    ids = {*view.people.ids(name)} if here else set()
    since = view.labels.since(key)
    about = [e for e in since if e.kind == "undo" or not ids or ids & {*e.sightings}]
    told = "; ".join(entry.told() for entry in about[-3:]) or "sightings were added or removed"
    raise ConflictError(
        f"{name!r} was changed since you opened it ({told}). Nothing was written; look at the "
        "person again, then repeat what you wanted to do"
    )
