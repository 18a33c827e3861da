"""Rankings of held-out training people, from which a model's calibration is learned.

People are held out in folds; a metric is fitted on the others and ranks the fold's people of one
camera for each sighting by another. Nobody who is ranked was seen by the metric that ranks them.

These metrics know fewer people than the final one, which is therefore surer than they are. Where
people suffice, each fold is ranked a second time by a metric that learns from one fold less, and
the trend is continued to the metric that learns from everybody. Learners that iterate are spared
both that and further divisions into folds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight._progress import progress
from resight.datasets.sightings import seen_by_two
from resight.errors import InputError
from resight.evaluation.calibration import Calibration, HeldOut, require_people, strangeness
from resight.evaluation.calibration_fitting import (
    continued,
    fit_calibration,
    fit_choice,
    with_person,
)
from resight.features.rows import FeatureRows, Rows
from resight.learners._base import Floats, KernelMetricLearner, MetricLearner
from resight.models.held_out_distances import Array, FoldDistances, distances_of
from resight.models.model import Model
from resight.tuning.auto import AutoKXQDA
from resight.tuning.candidates import AUTO_ROWS
from resight.tuning.cross_validation import person_folds, some_people
from resight.tuning.fold_metrics import threads_for

_FOLDS = 5  # fewer: metrics of far fewer people would judge; more: few strangers to be ranked
_RANKED = 400  # few people are divided up to four times, until about so many were ranked
_MIN_GALLERY = 4  # people that a ranking needs for its median
_TREND_PEOPLE = 50  # with fewer, the noise of the trend is larger than the trend

_WITHIN = 0.9975  # part of the training sightings that each limit of what was seen holds
_SEEN, _DIRECTIONS = 1000, 50  # sightings that tell what was seen, and directions among them
_SIGNED = 8  # dimensions by which a sighting is known again

SIGHTINGS_LIMIT = 3000
"""Sightings that a calibration learns from where time grows as the cube of their number: an exact
fit takes some seconds there. Of more, whole people are taken until there are so many."""


def calibrate(
    fold_distances: FoldDistances, persons: Array, cameras: Array, *, once: bool = False
) -> Calibration:
    """Learn a calibration from labelled rows, whose persons and cameras are given.

    `once` fits one metric for each fold and no more, for learners that take their time. Fewer than
    20 people seen by two cameras are refused, and so are cameras that share too few.
    """
    people = len(seen_by_two(persons, cameras))
    require_people(people)
    repeats = 1 if once else min(4, max(1, round(_RANKED / people)))
    trend = people >= _TREND_PEOPLE and not once
    with progress("calibration", _FOLDS * repeats * (1 + trend)) as advance:

        def counted(learn: Rows, held: Rows) -> Floats:
            found = fold_distances(learn, held)
            advance(1)
            return found

        def rankings(left_out: int) -> list[HeldOut]:
            found: list[HeldOut] = []
            for repeat in range(repeats):
                found += held_out_rankings(counted, persons, cameras, _FOLDS, repeat, left_out)
            return found

        held_out = rankings(0)
        if not held_out:
            raise InputError(
                "calibration ranks people held out in folds; no two cameras share "
                f"{2 * _MIN_GALLERY} people. Label more people that two of the cameras have seen"
            )
        calibration = fit_calibration(held_out, people)
        if not trend:
            return calibration
        # Parameters linear in 1 / people: from (k - 2) / k and (k - 1) / k of the people to all.
        fewer = fit_choice([with_person(one) for one in rankings(1)])
        return continued(calibration, fewer, (_FOLDS - 2) / _FOLDS)


def add_calibration(
    model: Model,
    features: Array | FeatureRows,
    persons: Array,
    cameras: Array,
    heights: Array | None = None,
) -> str | None:
    """Calibrate a fitted model where its training rows allow it; else return why not.

    `heights` of the crops, where they are known, tell how right answers are by height.
    """
    rows = features
    if not isinstance(rows, FeatureRows):
        rows = FeatureRows([np.asarray(features)], (rows.shape[1],))
    part = _learned_from(model.learner, rows, persons)
    some = rows.read(part)
    try:
        made = calibrate_model(model, some, persons[part], cameras[part])
    except InputError as error:
        return str(error)
    made = replace(made, **seen_range(some), trained=signature(model, rows))
    if heights is not None:
        made = replace(made, heights=heights[part][made.rows])
    model.calibration = made
    return None


def calibrate_on_new(
    model: Model, features: Array, persons: Array, cameras: Array
) -> tuple[Calibration | None, str | None]:
    """Learn what distances mean from people whom the model has not learned from; or say why not."""
    rankings = rankings_of(model.distances(features, features), persons, cameras)
    try:
        made = fit_calibration(list(rankings), len(seen_by_two(persons, cameras)))
    except InputError as error:
        return None, f"the new people do not suffice: {error}"
    return replace(made, **seen_range(features)), None


def _learned_from(learner: MetricLearner, rows: FeatureRows, persons: Array) -> Rows:
    """Return the rows that a calibration learns from: all, or some people where fits take long."""
    limit = len(rows)
    if isinstance(learner, AutoKXQDA):
        limit = AUTO_ROWS  # it learned from these itself
    elif isinstance(learner, KernelMetricLearner) or (
        rows.n_features > len(rows) and learner.learns
    ):
        limit = SIGHTINGS_LIMIT
    return np.arange(len(rows)) if len(rows) <= limit else some_people(persons, limit)


def seen_range(features: Array) -> dict[str, Any]:
    """Learn what descriptors of these cameras look like: half of them tell the rest.

    Whatever is stranger than nearly all of the second half is nothing that was learned from.
    """
    order = _drawn(len(features), 0)[:_SEEN]
    half, rest = (np.asarray(features[order[part::2]], np.float32) for part in (0, 1))
    centre = half.mean(axis=0)
    Z = half - centre
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    values, vectors = np.linalg.eigh((Z @ Z.T).astype(np.float64))
    k = max(1, min(_DIRECTIONS, len(Z) // 5, Z.shape[1] // 2))
    basis = (vectors[:, -k:] / np.sqrt(np.maximum(values[-k:], 1e-9))).T.astype(np.float32) @ Z
    limits = np.quantile(strangeness(rest, centre, basis), _WITHIN, axis=0)
    return {"centre": centre, "basis": basis, "limits": limits}


def signature(model: Model, rows: FeatureRows) -> NDArray[np.float32]:
    """Return a few dimensions of the embeddings that the model learned from."""
    try:
        parts = [model.embed(block)[:, :_SIGNED] for block in rows.in_blocks()]
    except InputError:  # an indefinite metric has no embedding, and no gallery
        return np.empty((0, 0), np.float32)
    return np.concatenate(parts).astype(np.float32)


def calibrate_model(model: Model, features: Array, persons: Array, cameras: Array) -> Calibration:
    """Learn the calibration of a model from the rows that it is fitted on.

    Inner products are computed once for all folds, unless the learner needs the features
    themselves. A setting that was chosen is kept.
    """
    distances = distances_of(model, features, persons, cameras)
    with threads_for(len(features)):
        return calibrate(distances, persons, cameras, once=iterates(model.learner))


def iterates(learner: MetricLearner) -> bool:
    """Tell whether a learner takes minutes where others take seconds."""
    return "max_iter" in learner.get_params()


def held_out_rankings(
    fold_distances: FoldDistances,
    persons: Array,
    cameras: Array,
    n_folds: int,
    seed: int = 0,
    left_out: int = 0,
) -> Iterator[HeldOut]:
    """Rank held-out people from each camera to each other, one gallery sighting a person.

    The people of as many further folds as `left_out` are neither learned from nor ranked.
    """
    folds = person_folds(persons, cameras, n_folds, seed=seed)
    for number, (learn, held) in enumerate(folds):
        others = [folds[(number + 1 + i) % n_folds][1] for i in range(left_out)]
        distances = fold_distances(np.setdiff1d(learn, np.concatenate([held, *others])), held)
        for one in rankings_of(distances, persons[held], cameras[held], seed):
            yield replace(one, rows=held[one.rows])


def rankings_of(
    distances: Floats, persons: Array, cameras: Array, seed: int = 0
) -> Iterator[HeldOut]:
    """Rank people from each camera to each other, one gallery sighting a person."""
    order = _drawn(len(persons), seed)
    for a, b in permutations(np.unique(cameras), 2):
        query = np.flatnonzero(cameras == a)
        there = order[cameras[order] == b]
        gallery = there[np.sort(np.unique(persons[there], return_index=True)[1])]
        same = persons[query][:, None] == persons[gallery][None, :]
        if len(gallery) >= _MIN_GALLERY and same.any():
            yield HeldOut(distances[np.ix_(query, gallery)], same, str(a), query)


def _drawn(n: int, seed: int) -> Rows:
    """Return an order of n rows that depends on no library's random numbers."""
    return np.array(sorted(range(n), key=lambda row: digest_of(f"{seed} {row}")), np.intp)
