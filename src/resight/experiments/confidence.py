"""Whether a learner's stated probabilities come true on people that it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.datasets.sightings import UNKNOWN_PERSON, Sightings
from resight.errors import InputError
from resight.evaluation.calibration import Bools, Calibration, Evidence, Rates, positive
from resight.evaluation.presence import Expected, evened, evenly, nearest, nearness
from resight.evaluation.statistics import scores
from resight.experiments.runner import over_splits
from resight.models.calibrating import calibrate, iterates
from resight.models.held_out_distances import gram_distances
from resight.plans import Plan
from resight.protocols import Protocol, Split, scored_persons
from resight.tuning.gram import Floats, GramSpace, Rows

Stated = dict[str, NDArray[Any]]
RATES = Rates()
_RESAMPLED = 1000
_OTHERS = 128  # queries that tell how near strangers come, as in a gallery


def confidence(
    sightings: Sightings, protocol: Protocol, space: GramSpace, plan: Plan, **how: Any
) -> dict[str, Any]:
    """Measure calibration over all queries of all splits, pooled.

    In each split everything, calibration included, is learned from that split's training people.
    Returns ``first_match``: scores of the probability that the first match is right;
    ``half_missing``: the same with the right sightings of half the queries removed (and that prior
    stated); ``not_in_gallery``: how often each answer was given and wrong there; ``all_there``: the
    same with everybody in the gallery. `how` is what `over_splits` takes.
    """
    plan.require_fixed()
    if protocol.scoring != "single":
        raise InputError(
            f"protocol {protocol.name!r} ranks people by the {protocol.scoring} of several "
            "distances; probabilities are stated for single sightings, so use a single-shot one"
        )
    stated = partial(_stated, sightings, protocol, space, plan)
    found = over_splits(stated, protocol.splits, title=f"calibration, {plan.learner}", **how)
    return pooled([{name: np.array(values) for name, values in one.items()} for one in found])


def pooled(splits: list[Stated]) -> dict[str, Any]:
    """Count over the queries of all splits; rates come with bounds over people."""
    stated = _joined(splits)
    missing, answer, person = stated["missing"], stated["half_answer"], stated["person"]
    found, absent, best = answer == "found", answer == "absent", stated["half_best"]
    nobody = stated["answer"] == "absent"  # where everybody is there
    rates = [float((s["half_answer"] == "found")[s["missing"]].mean()) for s in splits]
    identified = {
        name: identified_at(stated[name], stated[first], missing, RATES.false_accepts)
        for name, first in (("stands_out", "half_best"), ("relative", "half_right"))
    }
    return {
        "first_match": scores(stated["probability"], stated["right"]),
        "half_missing": scores(stated["half_probability"], stated["half_right"]),
        "not_in_gallery": {
            "stated_false_accepts": RATES.false_accepts,
            "false_accepts": float(found[missing].mean()),
            "false_accepts_bound": upper_bound(found[missing], person[missing]),
            "false_accepts_of_splits": rates,
            "false_rejects": float(absent[~missing].mean()),
            "false_rejects_bound": upper_bound(absent[~missing], person[~missing]),
            "identified": float((found & best)[~missing].mean()),
            "identified_at_rate": identified,
            "answers": {"present": _shares(answer[~missing]), "missing": _shares(answer[missing])},
            "wrong_first_of_found": float((~best)[found].mean()) if found.any() else 0.0,
            "found": int(found.sum()),
            "found_people": len(np.unique(person[found])),
            "queries": int((~missing).sum()),
            "missing": int(missing.sum()),
        },
        "all_there": {
            "false_rejects": float(nobody.mean()),
            "false_rejects_bound": upper_bound(nobody, person),
            "found": float((stated["answer"] == "found").mean()),
        },
    }


def _shares(answers: NDArray[Any]) -> dict[str, float]:
    return {told: float((answers == told).mean()) for told in ("found", "unsure", "absent")}


def identified_at(evidence: Floats, right: Bools, missing: Bools, rate: float) -> float:
    """Detection-and-identification rate where just this rate of missing people is accepted."""
    threshold = np.quantile(evidence[missing], 1.0 - rate, method="higher")
    return float(((evidence > threshold) & right)[~missing].mean())


def upper_bound(wrong: Bools, persons: NDArray[Any]) -> float:
    """Return the upper end of the 95% interval of a rate, people drawn with replacement."""
    names, codes = np.unique(persons, return_inverse=True)
    sums, counts = np.bincount(codes, wrong), np.bincount(codes)
    drawn = np.random.default_rng(0).integers(len(names), size=(_RESAMPLED, len(names)))
    return float(np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), 0.975))


def _stated(
    sightings: Sightings, protocol: Protocol, space: GramSpace, plan: Plan, split: Split
) -> dict[str, list[Any]]:
    """Calibrate on a split's training people and state probabilities for its queries."""
    learner = plan.spec.make(**plan.params)
    persons, cameras = sightings.persons, sightings.cameras
    train, test = split.train, split.test
    fit = gram_distances(learner, space, persons, cameras, plan.normalize)

    def folds(learn: Rows, held: Rows) -> Floats:
        return fit(train[learn], train[held])

    calibration = calibrate(folds, persons[train], cameras[train], once=iterates(learner))
    distances = fit(train, test)
    parts = []
    for query, gallery in split.directions:
        usable = np.tile(sightings.roles[gallery] != "junk", (len(query), 1))
        if protocol.cross_camera_only:
            same = persons[query][:, None] == persons[gallery]
            usable &= ~(same & (cameras[query][:, None] == cameras[gallery]))
        D = distances[np.ix_(np.searchsorted(test, query), np.searchsorted(test, gallery))]
        asked, held = scored_persons(sightings, query), scored_persons(sightings, gallery)
        parts.append(state(calibration, D, usable, asked, held))
    return {name: values.tolist() for name, values in _joined(parts).items()}


def _joined(parts: Sequence[Stated]) -> Stated:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def state(
    calibration: Calibration, distances: Floats, usable: Bools, asked: Any, held: Any
) -> Stated:
    """Return what is stated about the first match of each query of a direction, and what is true.

    First with everybody in the gallery, then with half of the queries' people (`missing`) taken
    out of it; `half_best` tells whether the likeliest is right there. How much evidence there is
    that the person is there is `stands_out`, or the nearest `relative` distance of resight 0.1.
    """
    gone = _half(asked)
    fair = evened(distances, nearness(np.log(positive(distances))))
    D, own = by_person(np.where(usable, distances, np.inf), held, asked)
    even, _ = by_person(np.where(usable, fair, np.inf), held, asked)

    def told(without: Bools) -> tuple[Floats, Floats, Evidence, Floats]:
        plain, d = (np.where(without, np.inf, one) for one in (D, even))
        share = calibration.shares(d)[np.arange(len(d)), plain.argmin(axis=1)]
        return plain, d, judged(calibration, d), share

    everybody, _, evidence, share = told(np.zeros_like(own))
    plain, d, found, half_share = told(own & gone[:, None])
    there = found.probability(RATES.prior)
    middle = np.nanmedian(np.where(np.isfinite(plain), plain, np.nan), axis=1)
    return {
        "person": np.asarray(asked, str),
        "probability": share,
        "right": _first_is_right(everybody, own),
        "answer": calibration.answers(evidence, RATES),
        "half_probability": there / found.share * half_share,
        "half_right": _first_is_right(plain, own),
        "half_answer": calibration.answers(found, RATES),
        "half_best": _first_is_right(d, own),
        "missing": gone,
        "stands_out": there,
        "relative": -plain.min(axis=1) / middle,
    }


def by_person(distances: Floats, held: Any, asked: Any) -> tuple[Floats, Bools]:
    """Average distances over the sightings of each known person; say which are the query's."""
    alone = np.array([f"\0{i}" for i in range(len(held))])
    names, codes = np.unique(np.where(held == UNKNOWN_PERSON, alone, held), return_inverse=True)
    D = np.full((len(distances), len(names)), np.inf)
    for code in range(len(names)):
        columns = distances[:, codes == code]
        counted = np.isfinite(columns)
        total = np.where(counted, columns, 0.0).sum(axis=1)
        D[:, code] = np.where(counted.any(1), total / np.maximum(counted.sum(1), 1), np.inf)
    return D, names[None, :] == np.asarray(asked)[:, None]


def judged(calibration: Calibration, distances: Floats) -> Evidence:
    """Judge queries (n, n_units) as a gallery does; the other queries show how strangers are."""
    near = nearest(np.log(positive(distances)))
    n = int(np.median(np.isfinite(distances).sum(axis=1)))
    strangers = calibration.strangers
    fit = strangers.fit(near[evenly(len(near), _OTHERS)], n)
    return calibration.evidence(distances, Expected.of(strangers, n, fit))


def _first_is_right(distances: Floats, own: Bools) -> Bools:
    """Whether the query's person is nearer than everybody else."""
    mine = np.where(own, distances, np.inf).min(axis=1)
    return np.asarray(mine < np.where(own, np.inf, distances).min(axis=1))


def _half(asked: NDArray[Any]) -> Bools:
    """Choose half of the queries by digests of their people, so that anybody chooses the same."""
    order = sorted(range(len(asked)), key=lambda i: digest_of("missing", str(asked[i]), str(i)))
    gone = np.zeros(len(asked), bool)
    gone[order[: len(asked) // 2]] = True
    return gone
