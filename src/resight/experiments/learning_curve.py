"""Learning curve: accuracy against the number of labelled people, in Gram space."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import Sightings, seen_by_two
from resight.errors import InputError
from resight.experiments.results import summary_of
from resight.experiments.runner import over_splits
from resight.experiments.trials import Trial, rank_directions
from resight.models.held_out_distances import gram_distances
from resight.plans import Plan
from resight.protocols import Protocol, Split
from resight.tuning.gram import GramSpace, Rows, lookup
from resight.validation import check_count

MIN_PEOPLE = 3  # two give one pair of strangers a camera, which tells nothing about their spread
DRAWS = 3


def learning_curve(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plan: Plan,
    sizes: Sequence[int] | None = None,
    *,
    draws: int = DRAWS,
    **how: Any,
) -> dict[str, Any]:
    """Measure a plan with fewer and fewer of each split's training people.

    `sizes` are by default all, half of them, a quarter, ... down to a sixteenth; `draws` are random
    orders of each split's people, whose subsets are nested. Returns ``points`` (people, and mean,
    sd and 95% interval over splits and draws of every measure, in percent), ``draws``, ``gain``
    (points of rank 1 that a doubling brings at the end) and ``sentence``. Only people seen by two
    cameras are counted and used: others teach no pair of one person. `how` is what `over_splits`
    takes.
    """
    plan.require_fixed()
    people = min(len(_people(sightings, split.train)) for split in protocol.splits)
    chosen = checked_sizes(sizes, people)
    labels = sightings.persons, sightings.cameras
    fit = gram_distances(plan.spec.make(**plan.params), space, *labels, plan.normalize)

    def figures(split: Split, size: int, draw: int) -> dict[str, Any]:
        distances = fit(some_people(sightings, split.train, size, draw), split.test)
        rankings = rank_directions(sightings, protocol, split, lookup(distances))
        return Trial(rankings, plan.params, 0.0).figures()

    def fits(split: Split) -> dict[str, list[dict[str, Any]]]:
        everybody = len(_people(sightings, split.train))  # the same in each draw
        drawn = {size: range(draws if size < everybody else 1) for size in chosen}
        return {f"{size}": [figures(split, size, draw) for draw in drawn[size]] for size in drawn}

    found = over_splits(fits, protocol.splits, title=f"learning curve, {plan.learner}", **how)
    points = []
    for size in chosen:
        of_size = [one for of_split in found for one in of_split[f"{size}"]]
        points.append({"people": size, "fits": len(of_size), **summary_of(of_size)})
    gain, sentence = _gain(points)
    return {"points": points, "draws": draws, "gain": gain, "sentence": sentence}


def checked_sizes(sizes: Sequence[int] | None, people: int) -> list[int]:
    """Return the numbers of people to learn from, ascending; refuse impossible ones."""
    needs = f"a learning curve needs at least {MIN_PEOPLE} people"
    if people < MIN_PEOPLE:
        raise InputError(f"{needs} to train who are seen by two cameras; there are {people}")
    if sizes is None:
        return sorted({max(MIN_PEOPLE, people >> halvings) for halvings in range(5)})
    sizes = [check_count(size, "people", 0) for size in sizes]
    if not sizes or min(sizes) < MIN_PEOPLE:
        raise InputError(f"{needs}, {sizes} given: from fewer no learner can be fitted")
    if max(sizes) > people:
        raise InputError(
            f"a learning curve up to {max(sizes)} people was asked for, but a split has only "
            f"{people} training people seen by two cameras; give sizes up to {people}"
        )
    return sorted(set(sizes))


def _people(sightings: Sightings, rows: Rows) -> NDArray[np.str_]:
    """People of some rows that two cameras have seen."""
    return seen_by_two(sightings.persons[rows], sightings.cameras[rows])


def some_people(sightings: Sightings, rows: Rows, size: int, draw: int = 0) -> Rows:
    """Return the rows of so many people that two cameras have seen, in a random, fixed order.

    More people of one draw include those of fewer.
    """
    people = _people(sightings, rows).tolist()
    order = sorted(people, key=lambda person: digest_of(f"{draw}", person))
    return rows[np.isin(sightings.persons[rows], order[:size])]


def _gain(points: list[dict[str, Any]]) -> tuple[float | None, str]:
    """Points of rank 1 for each doubling of people at the end, and what to do about it."""
    (people, rank1), *before = [(one["people"], one["rank1"]["mean"]) for one in points[:-3:-1]]
    if not before:
        return None, f"With {people} labelled people rank 1 is {rank1:.1f}%."
    fewer, less = before[0]
    gain = float(rank1 - less) / log2(people / fewer)
    told = (
        f"From {fewer} to {people} labelled people rank 1 went from {less:.1f}% to {rank1:.1f}%: "
        f"{gain:+.1f} points for each doubling. "
    )
    if gain < 1.0:
        return gain, told + "More labelled people would bring little."
    return gain, told + f"At that pace {2 * people} people would bring {gain:.0f} points more."
