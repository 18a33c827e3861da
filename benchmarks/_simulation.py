"""Simulate a town: crops that come in, workers that fail, searches over shards.

Nothing here is multiplied out that can wait in a queue: pictures arrive by day and night, workers
die with chunks in hand, a search waits for its slowest shard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from resight.features.describing import CHUNK

Floats = NDArray[np.float64]
_STEP = 10.0  # seconds of the simulated clock
_DAY = 86_400.0


@dataclass(frozen=True)
class Town:
    """Assumptions about one place; all of them are printed with the table."""

    sightings: float  # in the gallery
    labelled: float  # of them, to learn from
    searches: float  # a second, in the busiest hour
    days: float = 30.0  # after which sightings are forgotten
    busiest: float = 2.5  # rate of the busiest hour, in means
    lifetime: float = 7 * _DAY  # mean time until a worker fails
    repair: float = 600.0  # seconds until it is replaced
    delay: float = 60.0  # seconds that 95% of the pictures may wait
    memory: float = 64e9  # bytes of embeddings that one search machine holds
    cores: int = 8  # of a search machine
    speedup: float = 4.0  # of a scan by all of its cores: memory is shared
    share: float = 0.05  # of the embeddings that a search looks at: one day and a few cameras
    spread: float = 0.3  # log-normal spread of a shard's time
    answer: float = 1.0  # seconds within which 95% of the searches are answered

    @property
    def mean_rate(self) -> float:
        """Pictures a second."""
        return self.sightings / (self.days * _DAY)


@dataclass(frozen=True)
class Intake:
    """How pictures fared: workers needed, 95% wait, share that was done again, use of workers."""

    workers: int
    wait: float
    again: float
    busy: float


@dataclass(frozen=True)
class Search:
    """How searches fared: machines needed, with copies, and seconds of an answer."""

    machines: int
    median: float
    p95: float


def rate(town: Town, clock: Floats) -> Floats:
    """Pictures a second at a time of day: a peaked day and a quiet night, with the given mean.

    The profile is ((1 + cos) / 2)^k around the middle of the afternoon; k is found such that the
    busiest moment has `busiest` times the mean.
    """
    day = (1.0 + np.cos(2 * np.pi * (np.arange(1440) / 1440))) / 2.0
    low, high = 0.0, 100.0
    for _ in range(50):
        k = (low + high) / 2
        low, high = (k, high) if 1.0 / (day**k).mean() < town.busiest else (low, k)
    now = (1.0 + np.cos(2 * np.pi * (clock / _DAY - 0.6))) / 2.0
    scaled: Floats = town.mean_rate * now**k / (day**k).mean()
    return scaled


def intake(town: Town, seconds_each: float, workers: int, seed: int = 0) -> Intake:
    """Simulate two days with a number of workers, in steps of ten seconds."""
    rng = np.random.default_rng(seed)
    clock = np.arange(0.0, 2 * _DAY, _STEP)
    arriving = rng.poisson(rate(town, clock) * _STEP)
    alive, waiting, lost = workers, 0.0, 0.0
    away: list[int] = []  # steps at which failed workers come back
    waits, used = np.zeros(len(clock)), np.zeros(len(clock))
    for i in range(len(clock)):
        back = sum(step <= i for step in away)
        away = [step for step in away if step > i]
        alive += back
        failed = rng.binomial(alive, min(1.0, _STEP / town.lifetime))
        away += [i + int(town.repair / _STEP)] * failed
        alive -= failed
        capacity = alive * _STEP / seconds_each
        done = min(waiting + arriving[i], capacity)
        redo = min(done, failed * CHUNK / 2)  # half of a chunk, on average, was finished
        waiting += arriving[i] - done + redo
        lost += redo
        waits[i] = (waiting / capacity) * _STEP if capacity else np.inf
        used[i] = done / capacity if capacity else 1.0
    order = np.argsort(waits)
    heavy = np.cumsum(arriving[order]) / max(1.0, float(arriving.sum()))
    p95 = float(waits[order][np.searchsorted(heavy, 0.95)])
    return Intake(workers, p95, lost / max(1.0, float(arriving.sum())), float(used.mean()))


def needed_workers(town: Town, seconds_each: float) -> Intake:
    """Find the fewest workers that keep the promised delay."""
    workers = max(1, int(np.ceil(town.mean_rate * seconds_each)))
    found = intake(town, seconds_each, workers)
    while found.wait > town.delay:
        workers = max(workers + 1, int(1.05 * workers))
        found = intake(town, seconds_each, workers)
    return found


def search(town: Town, seconds_row: float, shards: int, seed: int = 0) -> tuple[float, float]:
    """Simulate 2,000 searches over shards with two copies each; return median and 95% seconds.

    Searches come at random times; every shard answers from the copy that is free first, one
    search at a time, and the answer waits for the slowest shard.
    """
    rng = np.random.default_rng(seed)
    rows = town.share * town.sightings / shards
    service = rows * seconds_row / town.speedup + 0.002  # and 2 ms to ask and to merge
    times = np.cumsum(rng.exponential(1.0 / town.searches, 2000))
    free = np.zeros((shards, 2))
    answers = np.empty(len(times))
    for i, now in enumerate(times):
        copy = free.argmin(axis=1)
        start = np.maximum(now, free[np.arange(shards), copy])
        noise = rng.lognormal(0.0, town.spread, shards)
        end = start + service * noise
        free[np.arange(shards), copy] = end
        answers[i] = end.max() - now
    settled = answers[200:]
    return float(np.median(settled)), float(np.quantile(settled, 0.95))


def needed_machines(town: Town, seconds_row: float, bytes_row: float) -> Search:
    """Find the fewest shards that fit into memory and answer in time; two copies of each."""
    shards = max(1, int(np.ceil(town.sightings * bytes_row / town.memory)))
    median, p95 = search(town, seconds_row, shards)
    while p95 > town.answer:
        shards = max(shards + 1, int(1.25 * shards))
        median, p95 = search(town, seconds_row, shards)
    return Search(2 * shards, median, p95)
