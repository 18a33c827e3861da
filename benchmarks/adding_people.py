"""Adding one person to 500 by IRS, against fitting again on all 501."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.learners import N_FEATURES, sightings
from resight import IRS
from resight.experiments.tables import markdown_table

PERSONS, ROUNDS = 500, 8


def run() -> str:
    """Time both by turns, linear and kernel, and compare what they learned."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        rows = [_measured(kernel) for kernel in ("linear", "rbf")]
    headings = ("kernel", "fit again", "add one", "ratio", "difference of distances")
    return (
        f"{markdown_table(headings, rows)}\n\nN = {2 * PERSONS} sightings and two more, d = "
        f"{N_FEATURES:,}, one thread, by turns, fastest of {ROUNDS}. The bandwidth is fixed; the "
        "difference is relative to the largest distance."
    )


def _measured(kernel: str) -> list[str]:
    X, persons, _ = sightings(PERSONS + 1)
    new = persons == PERSONS
    order = np.argsort(new, kind="stable")
    X, persons, new = X[order], persons[order], new[order]
    first = IRS(kernel=kernel, gamma=1.0).fit(X[~new], persons[~new])
    again, added = np.inf, np.inf
    for _ in range(ROUNDS):
        whole, grown = IRS(kernel=kernel, gamma=1.0), _copy(first)
        start = time.process_time()
        whole.fit(X, persons)
        middle = time.process_time()
        grown.add_people(X[new], persons[new])
        again = min(again, middle - start)
        added = min(added, time.process_time() - middle)
    D, expected = (one.distances(X[:200], X[-200:]) for one in (grown, whole))
    error = np.abs(D - expected).max() / expected.max()
    return [kernel, f"{again:.2f} s", f"{added:.3f} s", f"1 / {again / added:.0f}", f"{error:.0e}"]


def _copy(learner: IRS) -> IRS:
    """Return a second learner of the same state; adding people replaces arrays, never edits."""
    fresh = IRS(**learner.get_params())
    fresh.__dict__ = dict(learner.__dict__)
    return fresh


if __name__ == "__main__":
    print(run())
