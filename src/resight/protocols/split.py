"""Who trains, who is query, who is gallery: one split, and a protocol of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight._files import digest_of
from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError, unknown_name
from resight.protocols.scoring import SCORING_RULES

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Split:
    """One division of a table of sightings; rows are indices into it.

    Attributes
    ----------
    train, query, gallery : int arrays
        Rows to learn from, to ask for and to search in. A row may be query and gallery.
    reverse : pair of int arrays, optional
        (query, gallery) of the other direction, where both directions are asked.
    """

    train: Rows
    query: Rows
    gallery: Rows
    reverse: tuple[Rows, Rows] | None = None

    def __post_init__(self) -> None:
        for name in ("train", "query", "gallery"):
            object.__setattr__(self, name, _rows(name, getattr(self, name)))
        if self.reverse is not None:
            back = zip(("reverse query", "reverse gallery"), self.reverse, strict=True)
            object.__setattr__(self, "reverse", tuple(_rows(*one) for one in back))
        both = np.intersect1d(self.train, self.test)
        if len(both):
            raise InputError(
                f"{len(both)} sightings are used for both training and testing (such "
                f"as row {both[0]}); keep the two apart"
            )

    @property
    def directions(self) -> tuple[tuple[Rows, Rows], ...]:
        """All pairs (query, gallery) to be asked; a trial's result is the mean over them."""
        forward = (self.query, self.gallery)
        return (forward,) if self.reverse is None else (forward, self.reverse)

    @property
    def test(self) -> Rows:
        """All rows that are query or gallery, ascending."""
        return np.unique(np.concatenate([rows for pair in self.directions for rows in pair]))

    def check(self, sightings: Sightings, cross_camera_only: bool = False) -> None:
        """Refuse a split that would measure something else than it says.

        Rows that do not exist; distractors, junk or unknown people in training; people both trained
        and tested, or missing from the gallery (all named); a camera compared with itself.
        """
        last = max(self.train.max(), self.test.max())
        if last >= len(sightings):
            raise InputError(
                f"the split refers to row {last}, but there are {len(sightings)} sightings; it was "
                "made for other data"
            )
        roles, persons = sightings.roles[self.train], sightings.persons[self.train]
        outside = np.isin(roles, ("distractor", "junk")) | (persons == UNKNOWN_PERSON)
        if outside.any():
            example = str(sightings.paths[self.train][outside][0])
            raise InputError(
                f"{outside.sum()} training sightings are distractors, junk or of unknown people, "
                f"such as {example!r}; leave them out of training"
            )
        cameras = np.unique(sightings.cameras[self.train])
        if len(cameras) < 2:
            raise InputError(
                f"all training sightings come from one camera, {str(cameras[0])!r}; "
                "training needs at least two cameras"
            )
        refuse_overlap(set(persons.tolist()), set(sightings.persons[self.test].tolist()))
        for query, gallery in self.directions:
            _check_direction(sightings, query, gallery, cross_camera_only)


@dataclass(frozen=True, eq=False)
class Protocol:
    """A named way to measure: splits, how people are scored, what is ignored.

    Attributes
    ----------
    name, description : str
    splits : tuple of Split
    scoring : {"single", "sum", "min", "mean"}
        See `resight.protocols.scoring.person_scores`.
    cross_camera_only : bool
        Whether gallery sightings of the query's person by the query's own camera are ignored
        (Market-1501's rule): then give cameras to the measures.
    """

    name: str
    splits: tuple[Split, ...]
    scoring: str = "single"
    cross_camera_only: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", tuple(self.splits))
        if not self.splits:
            raise InputError(f"protocol {self.name!r} has no splits; give at least one")
        if self.scoring not in SCORING_RULES:
            raise unknown_name("scoring rule", self.scoring, SCORING_RULES)
        if self.cross_camera_only and self.scoring != "single":
            raise InputError(
                f"scoring {self.scoring!r} pools a person's sightings of all cameras, "
                "so the query's own camera cannot be ignored; use scoring 'single' "
                "with three or more cameras"
            )

    def check(self, sightings: Sightings) -> Protocol:
        """Check every split against the sightings and return the protocol itself."""
        for number, split in enumerate(self.splits):
            try:
                split.check(sightings, self.cross_camera_only)
            except InputError as error:
                raise InputError(f"protocol {self.name!r}, split {number}: {error}") from error
        return self

    @property
    def fingerprint(self) -> str:
        """Changes with any row of any split and with the scoring."""
        parts = [self.scoring, str(self.cross_camera_only)]
        for split in self.splits:
            tested = [rows for pair in split.directions for rows in pair]
            parts += [" ".join(map(str, rows.tolist())) for rows in (split.train, *tested)]
        return digest_of(*parts)

    def summary(self, sightings: Sightings) -> dict[str, Any]:
        """Facts for a result file: counts of the first split, scoring, fingerprint."""
        first, persons = self.splits[0], sightings.persons
        own = ("name", "description", "scoring", "cross_camera_only", "fingerprint")
        return {
            **{name: getattr(self, name) for name in own},
            "splits": len(self.splits),
            "directions": len(first.directions),
            "train_people": len(np.unique(persons[first.train])),
            "query_people": len(np.unique(persons[first.query])),
            **{name: len(getattr(first, name)) for name in ("train", "query", "gallery")},
        }


def shown(names: Iterable[str]) -> str:
    """List names for a message: sorted as people count, at most ten."""
    ordered = sorted(names, key=lambda name: (len(name), name))
    return ", ".join(ordered[:10]) + (f" and {len(ordered) - 10} more" if len(ordered) > 10 else "")


def refuse_overlap(trained: set[str], tested: set[str]) -> None:
    """Refuse people who are both trained and tested, naming them."""
    both = (trained & tested) - {UNKNOWN_PERSON}
    if both:
        raise InputError(
            f"{len(both)} people are in both training and test set: {shown(both)}; test people "
            "must not be seen in training, so remove them from one of the two"
        )


def _rows(name: str, values: ArrayLike) -> Rows:
    rows = np.array(values)
    if rows.ndim != 1 or not len(rows):
        raise InputError(f"{name} has shape {rows.shape}; give at least one row")
    if rows.dtype.kind not in "iu" or rows.min() < 0 or len(np.unique(rows)) != len(rows):
        raise InputError(f"{name} must be distinct row numbers, counted from 0")
    rows = rows.astype(np.intp)
    rows.flags.writeable = False
    return rows


def _check_direction(sightings: Sightings, query: Rows, gallery: Rows, cross_only: bool) -> None:
    cameras, persons = sightings.cameras, sightings.persons
    if len(np.unique(cameras[np.concatenate([query, gallery])])) < 2:
        raise InputError(
            f"query and gallery come from one camera only, {str(cameras[query[0]])!r}; "
            "re-identification needs at least two cameras"
        )
    itself = np.intersect1d(query, gallery)
    if len(itself) and not cross_only:
        raise InputError(
            f"{len(itself)} sightings are both query and gallery, such as "
            f"{str(sightings.paths[itself[0]])!r}, and would match themselves; remove "
            "them from the gallery or set cross_camera_only"
        )
    if np.any(persons[query] == UNKNOWN_PERSON):
        raise InputError("a query has no person label; label it or leave it out")
    held = Counter(persons[gallery].tolist())
    pairs = Counter(zip(persons[gallery].tolist(), cameras[gallery].tolist(), strict=True))
    asked = zip(persons[query].tolist(), cameras[query].tolist(), strict=True)
    missing = {one[0] for one in asked if held[one[0]] == (pairs[one] if cross_only else 0)}
    if missing:
        where = " by another camera" if cross_only else ""
        raise InputError(
            f"{len(missing)} query people are not in the gallery{where}: "
            f"{shown(missing)}; add sightings of them or leave out these queries"
        )
