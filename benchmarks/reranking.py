"""Memory and time of k-reciprocal re-ranking on 10,000 queries and 10,000 gallery sightings."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.machine import in_fresh_process, peak_gigabytes

N_PEOPLE, N_EACH, N_DIMENSIONS = 2500, 4, 64
LIMIT_GB = 2.0


def run() -> str:
    """Measure in a fresh process, so that the peak is the re-ranking's own."""
    seconds, before, peak, rank1 = in_fresh_process(_measure)
    n = N_PEOPLE * N_EACH
    dense = 2 * (2 * n) ** 2 * 8 / 1e9  # distances and encodings of all pairs in float64
    return "\n".join(
        [
            f"k-reciprocal re-ranking, {n} queries + {n} gallery, {N_DIMENSIONS}-d embeddings",
            f"  time                {seconds:8.1f} s",
            f"  memory before       {before:8.2f} GB",
            f"  peak memory         {peak:8.2f} GB (limit {LIMIT_GB}; the result alone is "
            f"{n * n * 8 / 1e9:.2f})",
            f"  dense definition    {dense:8.2f} GB (distances and encodings, computed)",
            f"  rank 1              {100 * rank1[0]:8.1f} -> {100 * rank1[1]:.1f}",
        ]
    )


def _measure() -> tuple[float, float, float, tuple[float, float]]:
    from resight.evaluation.pairwise import EmbeddedPoints
    from resight.evaluation.reranking import k_reciprocal

    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(N_PEOPLE), N_EACH)
    centres = rng.normal(size=(N_PEOPLE, N_DIMENSIONS))
    queries, gallery = (
        centres[people] + 0.9 * rng.normal(size=(len(people), N_DIMENSIONS)) for _ in range(2)
    )
    before = peak_gigabytes()
    start = time.perf_counter()
    points = EmbeddedPoints(queries, gallery)
    reranked = k_reciprocal(points)
    seconds = time.perf_counter() - start
    peak = peak_gigabytes()
    new = float(np.mean(people[reranked.argmin(axis=1)] == people))
    hits = 0
    for begin in range(0, len(people), 500):
        nearest = points.rows(begin, begin + 500)[:, len(people) :].argmin(axis=1)
        hits += int(np.sum(people[nearest] == people[begin : begin + 500]))
    return seconds, before, peak, (hits / len(people), new)


if __name__ == "__main__":
    print(run())
