"""LMNN and ITML against their straightforward statement, one pair or triplet at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from resight.learners._base import Codes, Floats
from resight.learners._laplacian import AllPairs
from resight.learners.itml import ITML, LogDetObjective, percentile_bounds
from resight.learners.lmnn import LMNN, LMNNObjective, target_neighbors

N_PERSONS, N_FEATURES = 100, 100
PUSH, SMOOTHING, GAMMA = 0.5, 0.1, 1.0
LMNN_STEPS = 20  # of the plain form, which takes a third of a second for one
ITML_CHANGE = 0.01  # where the published projections stop: relative change of the dual variables


def run() -> str:
    """Measure both at N = 200, d = 100; return a Markdown table."""
    Z, persons, cameras = _sightings()
    lines = [
        "| learner | plain, s | resight, s | times faster | plain objective | resight objective |",
        "|---|---|---|---|---|---|",
    ]
    with threadpool_limits(1):
        for name, measure in (("LMNN", _lmnn), ("ITML", _itml)):
            slow, fast, plain, ours = measure(Z, persons, cameras)
            ratio = slow / fast
            lines.append(
                f"| {name} | {slow:.1f} | {fast:.2f} | {ratio:.0f} | {plain:.5g} | {ours:.5g} |"
            )
    lines += [
        "",
        f"N = {2 * N_PERSONS}, d = {N_FEATURES}, one thread; lower objectives are better. LMNN: "
        f"{LMNN_STEPS} iterations of the same descent, the plain one triplet by triplet. ITML: the "
        "plain one is the published cyclic projection on one pair after another, until the dual "
        f"variables change by less than {ITML_CHANGE:g} in a sweep; resight to its default "
        "tolerance.",
    ]
    return "\n".join(lines)


def _sightings() -> tuple[Floats, Codes, Codes]:
    """Two cameras, one sighting each, of mean squared distance 1 between target pairs."""
    rng = np.random.default_rng(0)
    persons = np.tile(np.arange(N_PERSONS), 2)
    Z = rng.standard_normal((N_PERSONS, N_FEATURES))[persons]
    Z = Z + rng.standard_normal(Z.shape)
    Z -= Z.mean(axis=0)
    apart = Z[:N_PERSONS] - Z[N_PERSONS:]
    return Z / np.sqrt((apart**2).sum(axis=1).mean()), persons, np.repeat([0, 1], N_PERSONS)


def _timed(work: Callable[[], Floats]) -> tuple[float, Floats]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _lmnn(Z: Floats, persons: Codes, cameras: Codes) -> tuple[float, float, float, float]:
    targets = target_neighbors(Z, persons, cameras, 1)
    fast = LMNNObjective(Z, persons, cameras, targets, push=PUSH, smoothing=SMOOTHING)

    def ours() -> Floats:
        return _steps(fast, LMNN_STEPS)

    def plain() -> Floats:
        triplets = _triplets(persons, cameras, targets[:, 0])
        return _steps(lambda L: _plain_lmnn(L, Z, triplets), LMNN_STEPS)

    quick, end = min((_timed(ours) for _ in range(3)), key=lambda pair: pair[0])
    slow, plain_end = _timed(plain)
    return slow, quick, fast(plain_end)[0], fast(end)[0]


def _steps(objective: Callable[[Floats], tuple[float, Floats]], steps: int) -> Floats:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LMNN(tol=1e-4, max_iter=steps)._descend(objective, N_FEATURES)


def _triplets(persons: Codes, cameras: Codes, targets: Codes) -> list[tuple[int, int, int]]:
    """List anchor, target and impostor of every term of the push."""
    rows = range(len(persons))
    return [
        (i, int(targets[i]), m)
        for i in rows
        for m in rows
        if cameras[m] != cameras[i] and persons[m] != persons[i]
    ]


def _plain_lmnn(L: Floats, Z: Floats, triplets: list[tuple[int, int, int]]) -> tuple[float, Floats]:
    """Sum the objective and its gradient over target pairs and triplets, one by one."""
    value, G = 0.0, np.zeros((N_FEATURES, N_FEATURES))  # G: gradient by M = L^T L
    pairs = {(i, j) for i, j, _ in triplets}
    for i, j in pairs:
        x = Z[i] - Z[j]
        value += (1.0 - PUSH) * float(((L @ x) ** 2).sum())
        G += (1.0 - PUSH) * np.outer(x, x)
    for i, j, m in triplets:
        x, other = Z[i] - Z[j], Z[i] - Z[m]
        z = 1.0 + float(((L @ x) ** 2).sum()) - float(((L @ other) ** 2).sum())
        if z > 0.0:
            slope = min(z / SMOOTHING, 1.0)
            value += PUSH * slope * (z - 0.5 * SMOOTHING * slope)
            G += PUSH * slope * (np.outer(x, x) - np.outer(other, other))
    return value / len(pairs), 2.0 / len(pairs) * L @ G


def _itml(Z: Floats, persons: Codes, cameras: Codes) -> tuple[float, float, float, float]:
    pairs = AllPairs(persons, cameras)
    Z = Z / np.sqrt(pairs.mean_distance(Z))
    bounds = percentile_bounds(pairs, Z, (5.0, 95.0))
    fast = LogDetObjective(pairs, Z, bounds, GAMMA)

    def ours() -> Floats:
        return ITML()._descend(fast, N_FEATURES)

    def plain() -> Floats:
        root = np.linalg.cholesky(_bregman_projections(Z, persons, cameras, bounds))
        return np.asarray(root.T, np.float64)

    quick, end = min((_timed(ours) for _ in range(3)), key=lambda pair: pair[0])
    slow, plain_end = _timed(plain)
    return slow, quick, fast(plain_end)[0], fast(end)[0]


def _bregman_projections(
    Z: Floats, persons: Codes, cameras: Codes, bounds: tuple[float, float]
) -> Floats:
    """Project the metric on the constraint of one pair after another, with slack."""
    first, second = np.flatnonzero(cameras == 0), np.flatnonzero(cameras == 1)
    pairs = [(i, j, 1.0 if persons[i] == persons[j] else -1.0) for i in first for j in second]
    slack = [bounds[0] if sign > 0 else bounds[1] for _, _, sign in pairs]
    duals = np.zeros(len(pairs))
    A = np.eye(N_FEATURES)
    change = np.inf
    while change > ITML_CHANGE:
        before = duals.copy()
        for c, (i, j, sign) in enumerate(pairs):
            x = Z[i] - Z[j]
            Ax = A @ x
            p = float(x @ Ax)
            step = GAMMA / (GAMMA + 1.0) * sign * (1.0 / p - 1.0 / slack[c])
            alpha = min(float(duals[c]), step)
            slack[c] = GAMMA * slack[c] / (GAMMA + sign * alpha * slack[c])
            duals[c] -= alpha
            A += sign * alpha / (1.0 - sign * alpha * p) * np.outer(Ax, Ax)
        change = float(np.abs(duals - before).sum() / np.abs(before).sum()) if before.any() else 1.0
    return A


if __name__ == "__main__":
    print(run())
