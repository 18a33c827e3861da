"""Whether a learner's stated probabilities come true on people that it never saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight._progress import progress
from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError
from resight.evaluation.calibration import FALSE_ACCEPTS, Calibration
from resight.evaluation.reliability import scores
from resight.experiments.learning_curve import require_fixed
from resight.experiments.runner import Plan
from resight.models.calibrating import calibrate, iterates
from resight.models.held_out_distances import gram_distances
from resight.protocols import Protocol, Split, scored_persons
from resight.tuning.gram import GramSpace

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Stated:
    """What was stated about first matches, and what was true.

    Attributes
    ----------
    probability, right : arrays (n_queries,)
        Of the first match, with everybody in the gallery.
    half_probability, half_right : arrays (n_queries,)
        The same where half the queries' people were taken out of the gallery.
    missing, accepted : bool arrays (n_queries,)
        Whose person was taken out, and whose first match was accepted.
    """

    probability: Floats
    right: Bools
    half_probability: Floats
    half_right: Bools
    missing: Bools
    accepted: Bools


def confidence(
    sightings: Sightings, protocol: Protocol, space: GramSpace, plan: Plan, *, n_jobs: int = 1
) -> dict[str, Any]:
    """Measure calibration over all queries of all splits, pooled.

    In each split everything, calibration included, is learned from that split's training people.

    Returns
    -------
    dict
        ``first_match``: scores of the probability that the first match is right; ``half_missing``:
        the same with the right sightings of half the queries removed (and that prior stated);
        ``not_in_gallery``: detection-and-identification rate and realised false-accept rate there.
    """
    from joblib import Parallel, delayed

    require_fixed(plan)
    if protocol.scoring != "single":
        raise InputError(
            f"protocol {protocol.name!r} ranks people by the {protocol.scoring} of several "
            "distances; probabilities are stated for single sightings, so use a single-shot one"
        )
    tasks = [
        delayed(stated_in_split)(sightings, protocol, space, split, plan)
        for split in protocol.splits
    ]
    parts: list[Stated] = []
    with progress(f"calibration, {plan.learner}", len(tasks)) as advance:
        workers = min(n_jobs, len(tasks))
        for part in Parallel(n_jobs=workers, return_as="generator")(tasks):
            parts.append(part)
            advance(1)
    return summary(parts)


def summary(parts: list[Stated]) -> dict[str, Any]:
    """Pool the splits."""

    def pooled(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    missing, accepted = pooled("missing"), pooled("accepted")
    identified = accepted & pooled("half_right")
    rates = [float(part.accepted[part.missing].mean()) for part in parts]
    return {
        "first_match": scores(pooled("probability"), pooled("right")),
        "half_missing": scores(pooled("half_probability"), pooled("half_right")),
        "not_in_gallery": {
            "stated_false_accepts": FALSE_ACCEPTS,
            "false_accepts": float(accepted[missing].mean()),
            "false_accepts_of_splits": rates,
            "identified": float(identified[~missing].mean()),
            "queries": int((~missing).sum()),
            "missing": int(missing.sum()),
        },
    }


def stated_in_split(
    sightings: Sightings, protocol: Protocol, space: GramSpace, split: Split, plan: Plan
) -> Stated:
    """Calibrate on a split's training people and state probabilities for its queries."""
    from threadpoolctl import threadpool_limits

    learner = plan.spec.make(**plan.params)
    persons, cameras = sightings.persons, sightings.cameras
    train, test = split.train, split.test
    with threadpool_limits(1):
        folds = gram_distances(
            learner, space, train, persons[train], cameras[train], plan.normalize
        )
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
    return Stated(*(np.concatenate(values) for values in zip(*parts, strict=True)))


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
    """State what `Stated` holds for the queries of one direction."""
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
