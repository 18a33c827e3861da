"""Whether a learner's stated probabilities come true on people that it never saw."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError
from resight.evaluation.calibration import FALSE_ACCEPTS, Calibration
from resight.evaluation.reliability import scores
from resight.experiments.runner import over_splits
from resight.models.calibrating import calibrate, iterates
from resight.models.held_out_distances import gram_distances
from resight.plans import Plan
from resight.protocols import Protocol, Split, scored_persons
from resight.tuning.gram import Floats, GramSpace

Bools = NDArray[np.bool_]
# What is stated about the first match of a query, and what is true: with everybody in the gallery,
# and with half of the queries' people taken out of it (whose: missing; if it was still accepted).
_STATED = ("probability", "right", "half_probability", "half_right", "missing", "accepted")


def confidence(
    sightings: Sightings,
    protocol: Protocol,
    space: GramSpace,
    plan: Plan,
    *,
    folder: Path | None = None,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Measure calibration over all queries of all splits, pooled.

    In each split everything, calibration included, is learned from that split's training people.
    Returns ``first_match``: scores of the probability that the first match is right;
    ``half_missing``: the same with the right sightings of half the queries removed (and that prior
    stated); ``not_in_gallery``: detection-and-identification rate and realised false-accept rate
    there.
    """
    plan.require_fixed()
    if protocol.scoring != "single":
        raise InputError(
            f"protocol {protocol.name!r} ranks people by the {protocol.scoring} of several "
            "distances; probabilities are stated for single sightings, so use a single-shot one"
        )
    task = partial(_stated, sightings, protocol, space, plan)
    title = f"calibration, {plan.learner}"
    found = over_splits(task, protocol.splits, folder, n_jobs=n_jobs, title=title)
    return _pooled([{name: np.array(one[name]) for name in _STATED} for one in found])


def _pooled(splits: list[dict[str, NDArray[Any]]]) -> dict[str, Any]:
    stated = {name: np.concatenate([split[name] for split in splits]) for name in _STATED}
    missing, accepted = stated["missing"], stated["accepted"]
    identified = accepted & stated["half_right"]
    rates = [float(split["accepted"][split["missing"]].mean()) for split in splits]
    return {
        "first_match": scores(stated["probability"], stated["right"]),
        "half_missing": scores(stated["half_probability"], stated["half_right"]),
        "not_in_gallery": {
            "stated_false_accepts": FALSE_ACCEPTS,
            "false_accepts": float(accepted[missing].mean()),
            "false_accepts_of_splits": rates,
            "identified": float(identified[~missing].mean()),
            "queries": int((~missing).sum()),
            "missing": int(missing.sum()),
        },
    }


def _stated(
    sightings: Sightings, protocol: Protocol, space: GramSpace, plan: Plan, split: Split
) -> dict[str, list[float]]:
    """Calibrate on a split's training people and state probabilities for its queries."""
    learner = plan.spec.make(**plan.params)
    persons, cameras = sightings.persons, sightings.cameras
    train, test = split.train, split.test
    folds = gram_distances(learner, space, train, persons[train], cameras[train], plan.normalize)
    calibration = calibrate(folds, persons[train], cameras[train], once=iterates(learner))
    everything = np.arange(len(space))
    fit = gram_distances(learner, space, everything, persons, cameras, plan.normalize)
    distances = fit(train, test)
    place = np.full(len(sightings), -1)
    place[test] = np.arange(len(test))
    parts = []
    for query, gallery in split.directions:
        usable = _comparable(sightings, protocol, query, gallery)
        D = distances[np.ix_(place[query], place[gallery])]
        asked, held = scored_persons(sightings, query), scored_persons(sightings, gallery)
        parts.append(_state(calibration, D, usable, asked, held))
    stated = zip(_STATED, zip(*parts, strict=True), strict=True)
    return {name: np.concatenate(values).tolist() for name, values in stated}


def _comparable(
    sightings: Sightings, protocol: Protocol, query: NDArray[np.intp], gallery: NDArray[np.intp]
) -> Bools:
    """Which gallery sightings count for which query, as in the rankings."""
    usable = np.broadcast_to(sightings.roles[gallery] != "junk", (len(query), len(gallery))).copy()
    if protocol.cross_camera_only:
        same = sightings.persons[query][:, None] == sightings.persons[gallery][None, :]
        usable &= ~(same & (sightings.cameras[query][:, None] == sightings.cameras[gallery]))
    return usable


def _state(
    calibration: Calibration, distances: Floats, usable: Bools, asked: Any, held: Any
) -> tuple[NDArray[Any], ...]:
    """Return the arrays that `_STATED` names, for the queries of one direction."""
    gone = _half(asked)
    rows = []
    for i, d in enumerate(distances):
        columns = np.flatnonzero(usable[i])
        p, right = _first(calibration, d[columns], held[columns], asked[i], 1.0)
        if gone[i]:
            columns = columns[held[columns] != asked[i]]
        half_p, half_right = _first(calibration, d[columns], held[columns], asked[i], 0.5)
        accepted = bool(calibration.accepts(d[columns])[0])
        rows.append((p, right, half_p, half_right, gone[i], accepted))
    return tuple(np.array(values) for values in zip(*rows, strict=True))


def _first(
    calibration: Calibration, d: Floats, held: Any, person: Any, present: float
) -> tuple[float, bool]:
    """Return the probability of the first match and whether it is right; a tie counts as wrong.

    A known person's sightings are added up, as in a gallery.
    """
    stated = calibration.match_probabilities(d, present)[0]
    nearest = np.flatnonzero(d == d.min())
    wrong = nearest[held[nearest] != person]
    first = int(wrong[0]) if len(wrong) else int(nearest[0])
    own = held == held[first] if held[first] != UNKNOWN_PERSON else np.arange(len(held)) == first
    return float(stated[own].sum()), bool(held[first] == person)


def _half(asked: NDArray[Any]) -> Bools:
    """Choose half of the queries by digests of their people, so that anybody chooses the same."""
    order = sorted(range(len(asked)), key=lambda i: digest_of("missing", str(asked[i]), str(i)))
    gone = np.zeros(len(asked), bool)
    gone[order[: len(asked) // 2]] = True
    return gone
