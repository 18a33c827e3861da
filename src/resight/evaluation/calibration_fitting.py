"""Learning what distances mean from rankings of held-out people; see `calibration`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp

from resight.evaluation.calibration import Calibration, HeldOut, positive, require_people
from resight.evaluation.presence import Bools, Expected, Floats, evened, evenly, nearest, nearness

Choice = tuple[float, float, float]

_PRIOR = 10.0  # standard deviation of the prior of `choice`; it matters for few people only
_SHRUNK = 20  # strangers that the common spread counts as, beside a query's own
_QUANTILES = 1000  # of distances to strangers that are kept
_KEPT = 2000  # held-out queries that are kept


def fit_calibration(held_out: Sequence[HeldOut], n_people: int) -> Calibration:
    """Learn from rankings of held-out people; fewer than 20 are refused."""
    require_people(n_people)
    held_out = [with_person(one) for one in held_out]
    made = Calibration(_fit_pair(held_out), fit_choice(held_out), n_people)
    made = replace(made, **_fit_strangers(held_out))
    checks = np.concatenate([_check(made, one) for one in held_out], axis=1)
    cameras = np.concatenate([np.repeat(one.camera, len(one.same)) for one in held_out])
    some = evenly(len(cameras), _KEPT)
    rows = [one.rows for one in held_out if one.rows is not None]
    if len(rows) == len(held_out):
        made = replace(made, rows=np.concatenate(rows)[some])
    return replace(made, checks=checks[:, some], cameras=cameras[some])


def continued(calibration: Calibration, fewer: Choice, step: float) -> Calibration:
    """Continue the trend of `choice` to a metric that learns from more people.

    `fewer` was learned from rankings of the same people by metrics that learned from fewer people;
    `step` says how far to go on, in units of the step from there to `calibration`.
    """
    choice = np.array(calibration.choice) + step * np.subtract(calibration.choice, fewer)
    a, b = np.maximum(choice[:2], 0.0)
    return replace(calibration, choice=(float(a), float(b), float(choice[2])))


def with_person(one: HeldOut) -> HeldOut:
    """Keep the queries whose person is there; take out which sightings are near to everybody."""
    has = one.same.any(axis=1)
    distances = evened(one.distances, nearness(np.log(positive(one.distances))))
    rows = None if one.rows is None else one.rows[has]
    return HeldOut(distances[has], one.same[has], one.camera, rows)


def _rests(one: HeldOut) -> tuple[Floats, Floats]:
    """Return log-distances relative to each query's mean over strangers, and how many these are.

    What is left of a stranger who is among n of them has the variance 1 - 1/n, which is put right.
    """
    logs = np.log(positive(one.distances))
    n = (~one.same).sum(axis=1, keepdims=True, dtype=np.float64)  # (n_queries, 1)
    rest = logs - np.where(one.same, 0.0, logs).sum(axis=1, keepdims=True) / n
    return np.where(one.same, rest, rest * np.sqrt(n / (n - 1.0))), n[:, 0]


def _fit_strangers(held_out: Sequence[HeldOut]) -> dict[str, Any]:
    """Pool log-distances, relative to their query's mean and spread."""
    parts = [(one.same, *_rests(one)) for one in held_out]
    squares = [(np.where(same, 0.0, rest) ** 2).sum(axis=1) for same, rest, _ in parts]
    common = sum(own.sum() for own in squares) / sum(n.sum() for *_, n in parts)
    spreads, pooled = [], []
    for (same, rest, n), own in zip(parts, squares, strict=True):
        spreads.append(np.sqrt((_SHRUNK * common + own) / (_SHRUNK + n)))
        pooled.append((rest / spreads[-1][:, None], same))
    strangers = np.sort(np.concatenate([rest[~same] for rest, same in pooled]))
    mates = np.concatenate([(rest * same).sum(1) / same.sum(1) for rest, same in pooled])
    tail = max(20, len(strangers) // 500)
    some = evenly(len(mates), _KEPT)
    return {
        "quantiles": np.quantile(strangers, (np.arange(_QUANTILES) + 0.5) / _QUANTILES),
        "steepness": 1.0 / float((strangers[tail] - strangers[:tail]).mean()),  # Hill's estimate
        "mates": mates[some],
        "spreads": np.concatenate(spreads)[some],
    }


def _check(calibration: Calibration, one: HeldOut) -> Floats:
    """Judge the queries of a ranking, with their person and without: (2, n_queries, 6)."""
    cases = [one.distances, np.where(one.same, np.inf, one.distances)]
    near = [nearest(np.log(positive(d))) for d in cases]
    strangers, n = calibration.strangers, one.same.shape[1] - 1
    seen = np.concatenate([lows[:, : near[1].shape[1]] for lows in near])
    expected = Expected.of(strangers, n, strangers.fit(seen, n))
    right = one.same[np.arange(len(one.same)), one.distances.argmin(axis=1)]
    found = [
        np.column_stack([*calibration.evidence(d, expected), hits])
        for d, hits in zip(cases, (right, np.zeros_like(right)), strict=True)
    ]
    return np.array(found)


def _fit_pair(held_out: Sequence[HeldOut]) -> tuple[float, float]:
    logs = np.concatenate([np.log(positive(one.distances)).ravel() for one in held_out])
    same = np.concatenate([one.same.ravel() for one in held_out])
    weights = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
    sign = np.where(same, 1.0, -1.0)
    centre = float(np.average(logs, weights=weights))

    def loss(parameters: Floats) -> float:
        margin = -sign * (parameters[0] + parameters[1] * (logs - centre))
        # the prior matters where one threshold separates all pairs
        return float(weights @ np.logaddexp(0.0, -margin)) + 1e-6 * float(parameters @ parameters)

    a, b = minimize(loss, [0.0, 1.0], method="L-BFGS-B").x
    return float(a - b * centre), float(b)


def fit_choice(held_out: Sequence[HeldOut]) -> Choice:
    """Maximise the likelihood of the right sightings (a conditional logit), then that of presence.

    The second step finds the constant: every query is asked once with its person in the gallery
    and once without, and the two are told apart by the mean of r over the gallery.
    """
    z, same, exists = _stacked(held_out)
    features = np.stack([-z, -np.log(z)])  # (2, n_queries, n_gallery)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        utility = np.where(exists, np.tensordot(parameters, features, 1), -np.inf)
        of_person = np.where(same, utility, -np.inf)
        total, right = (logsumexp(one, axis=1, keepdims=True) for one in (utility, of_person))
        value = float((total - right).sum() + 0.5 * (parameters @ parameters) / _PRIOR**2)
        differ = np.exp(utility - total) - np.exp(of_person - right)
        return value, np.einsum("kqg,qg->k", features, differ) + parameters / _PRIOR**2

    # Neither is negative: what is nearer is never less alike.
    best = minimize(loss, [5.0, 1.0], jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 2).x
    utility = np.where(exists, np.tensordot(best, features, 1), -np.inf)
    # Log of the mean of r over the gallery, with the query's person in it and without.
    log_with = logsumexp(utility, axis=1) - np.log(exists.sum(axis=1))
    log_without = logsumexp(np.where(same, -np.inf, utility), axis=1)
    log_without -= np.log((exists & ~same).sum(axis=1))

    def slope(c: float) -> float:  # of the log-likelihood; falls with c
        return float(expit(-(c + log_with)).mean() - expit(c + log_without).mean())

    low, high = -log_with.max() - 50.0, -log_without.min() + 50.0
    return float(best[0]), float(best[1]), float(brentq(slope, low, high))


def _stacked(held_out: Sequence[HeldOut]) -> tuple[Floats, Bools, Bools]:
    """Return z, same, and which places of the galleries exist, of all queries.

    z is as a large gallery would give it: the median of a fold's few distances is noisy, and the
    noise would be taken for close strangers. In logarithms, the mean takes its place; the step
    from mean to median is taken once for the whole fold.
    """
    n = max(one.same.shape[1] for one in held_out)
    parts = []
    for one in held_out:
        rest, widen = _rests(one)[0], ((0, 0), (0, n - one.same.shape[1]))
        z = np.exp(rest - np.median(rest[~one.same]))
        exists = np.pad(np.ones_like(one.same), widen)
        parts.append((np.pad(z, widen, constant_values=1.0), np.pad(one.same, widen), exists))
    z, same, exists = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return z, same, exists
