"""How sure a search is: probabilities of its hits, and whether the person is there at all.

What is judged are *units*: a known person or a track before one camera, or sightings of one camera
that look like one person. Each camera is judged by itself: within a camera the units exclude each
other, between cameras they do not, and distances to different cameras have different scales.
Sightings that the model learned from are left out: their distances say nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from resight.datasets.sightings import seen_by_two
from resight.evaluation.calibration import (
    MIN_PEOPLE,
    Answer,
    Calibration,
    Evidence,
    Rates,
    positive,
)
from resight.evaluation.presence import MIN_PEOPLE as MIN_UNITS
from resight.evaluation.presence import Bools, Expected, evened, evenly, nearest, nearness
from resight.gallery.engines.base import Floats32
from resight.gallery.grouping import join_close
from resight.gallery.index import ExactIndex, Floats, Rows
from resight.gallery.view import View

T = TypeVar("T")

_LOOKED = 64  # nearest sightings of a camera among which groups are sought
_OTHERS = 128  # other sightings that are searched for to see how near strangers come
_FEW = 16  # other sightings from which on they tell something
_PRODUCTS = 20_000_000  # distances that may be computed once to see who is near to everybody
_AT_ONCE = 2**22  # distances that are held at once
_BLOCK = 4096
_TOGETHER = 1024  # sightings of a camera up to which all their distances at once cost less
_SMALL = 2048  # sightings of a gallery up to which that is so of all of them
_WORDS = {
    "found": "Found in this gallery",
    "unsure": "Can't tell whether this person is in this gallery",
    "absent": "Not found in this gallery",
}


@dataclass(frozen=True)
class Asked:
    """A query: its embedding (r,), and what else is known of it.

    `thumbs` are its pictures, small, (n, h, w, 3); `outside` tells whether it looks like nothing
    that the model learned from; `several` are the embeddings (n, r) that it is the mean of.
    """

    embedding: Floats32
    thumbs: Floats32 | None = None
    outside: bool = False
    several: Floats32 | None = None


@dataclass(frozen=True)
class Presence:
    """Whether the query's person is among the sightings that were searched."""

    answer: Answer  # "found", "unsure" or "absent"
    false_accepts: float  # of people who are not there, the part who are called found, at most
    false_rejects: float  # of people who are there, the part who are called absent, at most
    compared: int  # sightings that were searched
    why: str = ""  # what keeps it from being sure, in a sentence
    # How often "found" and "absent" were right about held-out people.
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Say it in plain English."""
        return _WORDS[self.answer]


@dataclass(frozen=True)
class Judgement:
    """What is known of every row of the table."""

    probabilities: Floats  # (n,), of each row's unit; NaN where nothing can be said
    units: Rows  # (n,), equal for the members of a unit; -1 where it was not searched
    scale: float  # the distance at which same and different are equally likely
    presence: Presence


def judge(view: View, asked: Asked, searched: Bools) -> Judgement | None:
    """Judge all sightings that a search looked at; None without a calibrated model in memory."""
    calibration, index = view.calibration, view.index
    if calibration is None or index is None or not searched.any():
        return None
    [distances] = index.distances(asked.embedding[None])
    usable = searched & ~view.learned_from
    scale = float(np.median(distances[usable if usable.any() else searched]))
    scale *= calibration.relative_at(0.0)
    if asked.several is not None:
        # The distances to their mean are shorter by a constant, which would make gaps larger.
        distances = np.exp(np.log(positive(index.distances(asked.several))).mean(axis=0))
    probabilities, units = np.full(len(distances), np.nan), np.where(searched, view.units, -1)
    rates, told = view.manifest.rates, []
    for camera in np.unique(view.table.cameras[usable]).tolist():
        rows = np.flatnonzero(usable & (view.table.cameras == camera))
        [units[rows]] = _joined(view, index, rows, distances[None, rows])
        longer = _once(index.kept, ("longer", camera), _lengthened, view, index, camera)
        codes = np.unique(units[rows], return_inverse=True)[1]
        of_unit = np.bincount(codes, distances[rows] * longer[rows]) / np.bincount(codes)
        if len(of_unit) < MIN_UNITS:
            continue
        there: Any = rates.prior  # of a model that resight 0.1 calibrated: presence is not known
        if calibration.decides:
            n = len(of_unit)
            fit = _once(view.kept, ("fit", camera), _fit, view, index, calibration, camera)
            given = calibration.strangers, n, fit
            expected = _once(view.kept, ("expected", camera, n), Expected.of, *given)
            told.append(calibration.evidence(of_unit[None], expected))
            there = told[-1].probability(rates.prior) / told[-1].share
        probabilities[rows] = there * calibration.shares(of_unit[None])[0][codes]
    left_out = searched & ~usable
    near_trained = distances[left_out].min(initial=np.inf) < distances[usable].min(initial=np.inf)
    measured = calibration.measured(rates) if calibration.decides else {}
    answer, why = _answer(calibration, rates, told, asked.outside, bool(near_trained))
    if answer == "unsure" and not why:
        why = "the best match does not stand out enough from other people"
        if "found" not in measured:
            why = "the model knows too few people to tell when a match is right; label more"
    presence = Presence(
        answer, rates.false_accepts, rates.false_rejects, int(searched.sum()), why, measured
    )
    return Judgement(probabilities, units, max(scale, np.finfo(float).tiny), presence)


def _answer(
    calibration: Calibration, rates: Rates, cameras: list[Evidence], outside: bool, near: bool
) -> tuple[Answer, str]:
    """Answer whether the person is there by the evidence of each camera, and what forbids it."""
    if not calibration.decides:
        return "unsure", "the model was calibrated by an older version of resight; retrain it"
    if outside:
        return "unsure", "this picture looks like nothing that the model learned from"
    if near:  # to what it has learned from
        return "unsure", "the nearest sightings trained the model, so their distances do not count"
    if not cameras:
        return "unsure", "there are too few people here to compare with"
    first = cameras[int(np.argmin([float(one.chance[0]) for one in cameras]))]
    # Somebody absent from all cameras is called found by none of them, and somebody who is in one
    # of them is called absent by it as often as by itself.
    joint = Evidence(
        1.0 - (1.0 - first.chance) ** len(cameras),
        np.stack([one.miss for one in cameras]).max(axis=0),
        first.log_odds,
        first.share,
        first.tolerated / len(cameras),
    )
    return cast("Answer", calibration.answers(joint, rates).item()), ""


def _once(kept: dict[Any, Any], key: Any, make: Callable[..., T], *args: Any) -> T:
    """Work something out once for a view or an index."""
    if key not in kept:
        kept[key] = make(*args)
    return cast("T", kept[key])


def _fit(
    view: View, index: ExactIndex, calibration: Calibration, camera: str
) -> tuple[float, float]:
    """Search the camera for sightings of other cameras: how near its strangers come."""
    rows = np.flatnonzero((view.table.cameras == camera) & ~view.learned_from)
    lists, longer = [], _once(index.kept, ("longer", camera), _lengthened, view, index, camera)
    names, others = np.unique(view.units[rows]), _others(view, camera, _OTHERS)
    if not len(others):
        return 1.0, 0.0
    squares = _between(index, rows, rows) if len(rows) <= _TOGETHER else None
    for part in np.array_split(others, max(1, len(others) * len(rows) // _AT_ONCE)):
        found = _between(index, part, rows)
        units = _joined(view, index, rows, found, squares)
        own = np.where(rows == part[:, None], units, -1).max(axis=1, initial=-1, keepdims=True)
        places = np.searchsorted(names, units) + len(names) * np.arange(len(part))[:, None]
        counted, cells = units != own, len(part) * len(names)
        counts = np.bincount(places[counted], minlength=cells)
        sums = np.bincount(places[counted], (found * longer[rows])[counted], cells)
        logs = np.log(positive(sums / np.maximum(counts, 1)))
        lists.append(nearest(np.where(counts, logs, np.inf).reshape(len(part), -1)))
    return calibration.strangers.fit(np.concatenate(lists), len(names))


def _others(view: View, camera: str, most: int) -> Rows:
    """Return sightings to search a camera for, one of each unit: of other cameras, or its own."""
    first = np.zeros(len(view.table), bool)
    first[np.unique(view.units, return_index=True)[1]] = True
    first &= ~view.learned_from
    here = view.table.cameras == camera
    elsewhere = np.flatnonzero(first & ~here)
    rows = elsewhere if len(elsewhere) >= _FEW else np.flatnonzero(first & here)
    return rows[evenly(len(rows), most)]


def _lengthened(view: View, index: ExactIndex, camera: str) -> Floats:
    """Return what distances to the rows of a camera are multiplied by, (n,): see `evened`."""
    rows, factors = np.flatnonzero(view.table.cameras == camera), np.ones(len(view.table))
    asked = _others(view, camera, max(_OTHERS, min(1000, _PRODUCTS // len(rows))))
    # Before the camera itself, everybody would be near to their own other sightings.
    if len(asked) >= _FEW and view.table.cameras[asked[0]] != camera:
        near = [
            nearness(np.log(positive(_between(index, asked, part))))
            for part in np.split(rows, range(_BLOCK, len(rows), _BLOCK))
        ]
        factors[rows] = evened(np.ones(len(rows)), np.concatenate(near))
    return factors


def _joined(
    view: View, index: ExactIndex, rows: Rows, distances: Floats, squares: Floats | None = None
) -> Rows:
    """Return the units of one camera's rows for some queries, (m, n), by their distances (m, n).

    Near rows that nothing joins are grouped. Only the nearest are looked at: whether far ones
    belong together does not matter to the query. `squares` are the squared distances between the
    rows, if they are known.
    """
    units = np.tile(view.units[rows], (len(distances), 1))
    near = np.argsort(distances, axis=1, kind="stable")[:, :_LOOKED]
    loose = ((view.persons[rows] == "") & (view.table.sequences[rows] == ""))[near]
    scales = np.sqrt(_scales(view, index, rows[near]))
    n, calibration = len(rows), view.model.calibration  # one of n is the same person, if any
    cut = _once(view.kept, ("cut", n), calibration.relative_at, np.log(n))
    if squares is None:
        apart = np.array([index.distances(index.embeddings[some], some) for some in rows[near]])
    else:
        apart = squares[near[:, :, None], near[:, None]]
    close = apart <= cut * (scales[:, :, None] * scales[:, None])
    joined = np.take_along_axis(near, join_close(close & loose[:, :, None] & loose[:, None]), 1)
    np.put_along_axis(units, near, np.take_along_axis(units, joined, 1), 1)
    return units


def _between(index: ExactIndex, rows: Rows, others: Rows) -> Floats:
    """Return squared distances of some rows to others; of a small gallery all are kept."""
    if len(index) > _SMALL:
        return index.distances(index.embeddings[rows], others)
    return _once(index.kept, "every", index.distances, index.embeddings)[np.ix_(rows, others)]


def _scales(view: View, index: ExactIndex, rows: Rows) -> Floats:
    """Return the median squared distance of each row of a camera to sightings of it."""
    scales: Floats = index.kept.setdefault("scales", np.full(len(view.table), np.nan))
    new = np.unique(rows[np.isnan(scales[rows])])
    if len(new):
        here = np.flatnonzero(view.table.cameras == view.table.cameras[new[0]])
        scales[new] = np.median(_between(index, here[evenly(len(here), _OTHERS)], new), axis=0)
    return scales[rows]


def not_judged(view: View) -> str:
    """Say why a search states no probabilities."""
    if view.calibration is not None:
        return "" if view.index is not None else "this gallery is too large to be judged in memory"
    people = len(_once(view.kept, "people", seen_by_two, view.persons, view.table.cameras))
    if people < MIN_PEOPLE:
        return f"not calibrated yet: label {MIN_PEOPLE - people} more people in two cameras"
    return "not calibrated yet: retrain the model"
