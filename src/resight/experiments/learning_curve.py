"""Learning curve: accuracy against the number of labelled people, in Gram space."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from resight._files import digest_of
from resight.datasets.sightings import Sightings, seen_by_two
from resight.errors import InputError
from resight.experiments.results import summary_of
from resight.experiments.runner import over_splits
from resight.experiments.tables import HEADINGS, markdown_table, summary_cells
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
    folder: Path | None = None,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Measure a plan with fewer and fewer of each split's training people.

    `sizes` are by default all, half of them, a quarter, ... down to a sixteenth; `draws` are random
    orders of each split's people, whose subsets are nested. Returns ``points`` (people, and mean,
    sd and 95% interval over splits and draws of every measure, in percent), ``draws``, ``gain``
    (points of rank 1 that a doubling brings at the end) and ``sentence``. Only people seen by two
    cameras are counted and used: others teach no pair of one person.
    """
    plan.require_fixed()
    people = min(len(_people(sightings, split.train)) for split in protocol.splits)
    chosen = checked_sizes(sizes, people)
    task = partial(_fewer_people, sightings, protocol, space, plan, chosen, draws)
    title = f"learning curve, {plan.learner}"
    found = over_splits(task, protocol.splits, folder, n_jobs=n_jobs, title=title)
    points = []
    for size in chosen:
        fits = [figures for of_split in found for figures in of_split[f"{size}"]]
        points.append({"people": size, "fits": len(fits), **summary_of(fits)})
    gain = _gain(points)
    return {"points": points, "draws": draws, "gain": gain, "sentence": _sentence(points, gain)}


def checked_sizes(sizes: Sequence[int] | None, people: int) -> list[int]:
    """Return the numbers of people to learn from, ascending; refuse impossible ones."""
    if people < MIN_PEOPLE:
        raise InputError(
            f"a learning curve needs at least {MIN_PEOPLE} training people seen by two cameras; "
            f"there are {people}"
        )
    if sizes is None:
        return sorted({max(MIN_PEOPLE, people >> halvings) for halvings in range(5)})
    sizes = [check_count(size, "people", 0) for size in sizes]
    if not sizes or min(sizes) < MIN_PEOPLE:
        raise InputError(
            f"a learning curve needs sizes of at least {MIN_PEOPLE} people, {list(sizes)} given: "
            "from fewer no learner can be fitted"
        )
    if max(sizes) > people:
        raise InputError(
            f"a learning curve up to {max(sizes)} people was asked for, but a split has only "
            f"{people} training people seen by two cameras; give sizes up to {people}"
        )
    return sorted(set(sizes))


def curve_table(curve: dict[str, Any]) -> str:
    """Return a Markdown table of a curve, in percent."""
    rows = [[str(point["people"]), *summary_cells(point)] for point in curve["points"]]
    return markdown_table(("people", *HEADINGS), rows)


def _people(sightings: Sightings, rows: Rows) -> list[str]:
    """People of some rows that two cameras have seen."""
    people: list[str] = seen_by_two(sightings.persons[rows], sightings.cameras[rows]).tolist()
    return people


def some_people(sightings: Sightings, rows: Rows, size: int, draw: int = 0) -> Rows:
    """Return the rows of so many people that two cameras have seen, in a random, fixed order.

    More people of one draw include those of fewer.
    """
    people = _people(sightings, rows)
    order = sorted(people, key=lambda person: digest_of(f"{draw}", person))
    return rows[np.isin(sightings.persons[rows], order[:size])]


def _fewer_people(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plan: Plan,
    sizes: list[int],
    draws: int,
    split: Split,
) -> dict[str, list[dict[str, Any]]]:
    """Fit on nested subsets of a split's training people; the same people are asked for always."""
    everything = np.arange(len(space))
    learner = plan.spec.make(**plan.params)
    persons, cameras = sightings.persons, sightings.cameras
    fit = gram_distances(learner, space, everything, persons, cameras, plan.normalize)
    people = _people(sightings, split.train)
    found: dict[str, list[dict[str, Any]]] = {f"{size}": [] for size in sizes}
    for draw in range(draws):
        for size in sizes:
            if size == len(people) and draw:
                continue  # everybody: the same in each draw
            rows = some_people(sightings, split.train, size, draw)
            distances = fit(rows, split.test)
            rankings = rank_directions(sightings, protocol, split, lookup(distances))
            found[f"{size}"].append(Trial(rankings, plan.params, 0.0).figures())
    return found


def _gain(points: list[dict[str, Any]]) -> float | None:
    """Points of rank 1 for each doubling of people, between the last two sizes."""
    if len(points) < 2:
        return None
    before, last = points[-2:]
    rise = float(last["rank1"]["mean"] - before["rank1"]["mean"])
    return rise / log2(last["people"] / before["people"])


def _sentence(points: list[dict[str, Any]], gain: float | None) -> str:
    """Answer how many people must be labelled, from the measured points."""
    last = points[-1]
    if gain is None:
        return f"With {last['people']} labelled people rank 1 is {last['rank1']['mean']:.1f}%."
    before = points[-2]
    told = (
        f"From {before['people']} to {last['people']} labelled people rank 1 went from "
        f"{before['rank1']['mean']:.1f}% to {last['rank1']['mean']:.1f}%: {gain:+.1f} points for "
        "each doubling. "
    )
    if gain < 1.0:
        return told + "More labelled people would bring little."
    return told + f"At that pace {2 * last['people']} people would bring {gain:.0f} points more."
