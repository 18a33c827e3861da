"""A gallery's embeddings in the memory of a cluster: parts that Dask workers read and search.

A part is a block of the numbers that the database gives to sightings as they are added, so an
addition changes the last part alone. Whoever searches tells with every question, by a digest of
their numbers, which sightings each part has to hold. A worker whose part holds others reads from
the gallery what has changed before it answers; so additions, erasing and another model are in every
answer, and no message has to reach anybody. What belongs to a lost worker is read by another one,
and until that is done answers say what they lack.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resight._files import digest_of
from resight.errors import StoreError
from resight.gallery.engines import connect
from resight.gallery.engines.base import Engine, Floats32
from resight.gallery.index import ExactIndex
from resight.gallery.view import View
from resight.workers.dask_cluster import ClusterError, ClusterExecutor

Rows = NDArray[np.intp]
Numbers = NDArray[np.int64]
Nearest = tuple[Rows, NDArray[np.float64]]
SIZE = 1 << 16  # numbers of a part: with 256 dimensions 64 MB
_POLL = 0.5  # seconds after which it is looked whether a worker that does not answer is still there


class ChangedError(StoreError):
    """The gallery was changed while it was searched; whoever meets it searches again."""


class Wanted(NamedTuple):
    """What one part has to hold for a question, and which of it may be found."""

    first: int  # number
    stop: int  # the first number of the next part
    last: int  # greatest number that counts: sightings that came later do not
    digest: str  # of the numbers, in the order of the table
    allowed: bytes | None = None  # bits, in the order of the table


class Place(NamedTuple):
    """Which embeddings: the gallery as workers open it, the model's number and its dimensions."""

    uri: str
    generation: int
    width: int


# ---- in a worker


@dataclass(frozen=True)
class _Part:
    """Embeddings of one part, in the order of the table."""

    generation: int
    numbers: Numbers
    index: ExactIndex
    digests: dict[int, str] = field(default_factory=dict)  # of the numbers up to one

    def holds(self, wanted: Wanted) -> bool:
        if wanted.last not in self.digests:
            self.digests[wanted.last] = _digest(self.numbers[self.numbers <= wanted.last])
        return self.digests[wanted.last] == wanted.digest

    def search(self, wanted: Wanted, queries: Floats32, k: int) -> list[Nearest]:
        """Return the k nearest of each query: places among the wanted sightings, distances."""
        places = np.flatnonzero(self.numbers <= wanted.last)
        allowed = np.zeros(len(self.numbers), bool)
        allowed[places] = True
        if wanted.allowed is not None:
            bits = np.unpackbits(np.frombuffer(wanted.allowed, np.uint8), count=len(places))
            allowed[places] = bits
        found = self.index.search(queries, k, None if allowed.all() else allowed)
        return [(np.searchsorted(places, rows), distances) for rows, distances in found]


_ENGINES: dict[str, Engine] = {}
_PARTS: dict[tuple[str, int], _Part] = {}
_LOCK = threading.Lock()


def answer(
    place: Place, wanted: Sequence[Wanted], queries: Floats32, k: int
) -> list[list[Nearest] | None]:
    """Search some parts (in a worker); None for one that cannot be as it is wanted.

    Without queries the parts are read, if need be, and that is all.
    """
    parts = [_ready(place, one) for one in wanted]
    return [
        None if part is None else part.search(one, queries, k) if len(queries) else []
        for part, one in zip(parts, wanted, strict=True)
    ]


def drop(place: Place, first: int) -> None:
    """Let go of a part that another worker holds now."""
    with _LOCK:
        _PARTS.pop((place.uri, first), None)


def _ready(place: Place, wanted: Wanted) -> _Part | None:
    """Return a part that holds what is wanted, read again as far as it does not."""
    with _LOCK:
        part = _PARTS.get((place.uri, wanted.first))
        if part is None or part.generation != place.generation:
            nothing = ExactIndex(np.empty((0, place.width), np.float32))
            part = _Part(place.generation, np.empty(0, np.int64), nothing)
        if not part.holds(wanted):
            engine = _ENGINES[place.uri] = _ENGINES.get(place.uri) or connect(place.uri)
            with engine.transaction(reading=True):
                if place.generation not in engine.generations():
                    return None
                part = _read(engine, place, part, wanted.first, wanted.stop)
            _PARTS[place.uri, wanted.first] = part
        return part if part.holds(wanted) else None


def _read(engine: Engine, place: Place, old: _Part, first: int, stop: int) -> _Part:
    """Read a part as it is now, of its embeddings those that are new."""
    numbers = engine.numbers(place.generation, first, stop)
    known, vectors = old.numbers, old.index.embeddings
    new = np.setdiff1d(numbers, known)
    if len(new):
        more, its = engine.vectors(place.generation, place.width, int(new[0]), stop)
        known, vectors = np.concatenate([known, more]), np.concatenate([vectors, its])
    order = np.argsort(known, kind="stable")
    rows = order[np.searchsorted(known, numbers, sorter=order)]
    return _Part(place.generation, numbers, ExactIndex(vectors[rows]))


def _digest(numbers: Numbers) -> str:
    return digest_of(numbers.astype("<i8").tobytes())


# ---- where the question comes from


class Parts:
    """The parts of a gallery and the workers that hold them.

    Every part has one worker. While another one reads it, because the workers have changed, the
    first is asked on; if that one is lost, the part is missing meanwhile.
    """

    def __init__(self, engine: Engine, executor: ClusterExecutor) -> None:
        self._engine, self._executor = engine, executor
        self._uri = engine.uri if "://" in engine.uri else str(Path(engine.uri).resolve())
        self._lock = threading.Lock()
        self._table: object = None  # that the layout belongs to
        self._layout: dict[int, tuple[Rows, Wanted]] = {}  # by the first number of a part
        self._owners: dict[int, str] = {}
        self._loads: dict[str, tuple[int, Future[Any]]] = {}  # one at a time for each worker
        self._moving = False  # whether a thread sees to it that these go on

    def nearest(
        self, view: View, queries: Floats32, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[Nearest], set[int]]:
        """Return rows and distances of the k nearest of each query, and the parts that lack."""
        generation = view.manifest.current
        place = Place(self._uri, generation.number, generation.width)
        with self._lock:
            layout = self._laid_out(view)
            asked, missing = self._shared_out(place, layout)
            if self._loads and not self._moving:
                self._moving = True
                threading.Thread(target=self._hand_over, args=(place,), daemon=True).start()
        wanted = {}  # parts in which something may be found
        for first, (rows, one) in layout.items():
            if allowed is None:
                wanted[first] = one
            elif allowed[rows].any():
                wanted[first] = one._replace(allowed=np.packbits(allowed[rows]).tobytes())
        missing &= wanted.keys()
        tasks: dict[Future[Any], tuple[str, list[int]]] = {}
        for worker, its in asked.items():
            firsts = [first for first in its if first in wanted]
            if firsts:
                some = [wanted[first] for first in firsts]
                task = self._executor.submit(answer, place, some, queries, k, on=worker)
                tasks[task] = worker, firsts
        found: list[list[Nearest]] = [[] for _ in queries]
        for firsts, answers in self._answered(tasks):
            if answers is None:
                missing.update(firsts)
                continue
            for first, of_part in zip(firsts, answers, strict=True):
                if of_part is None:
                    raise ChangedError(
                        f"gallery {self._engine.uri} changes faster than the cluster reads it, or "
                        "sightings lack embeddings; search again, or see `resight gallery check`"
                    )
                for of_query, (places, distances) in zip(found, of_part, strict=True):
                    of_query.append((layout[first][0][places], distances))
        return [_merged(of_query, k) for of_query in found], missing

    def told(self, missing: Iterable[int]) -> str:
        """Say what an answer lacks, empty if it lacks nothing."""
        firsts = sorted(self._layout)
        lost = sorted(firsts.index(first) + 1 for first in missing if first in self._layout)
        if not lost:
            return ""
        n = sum(len(self._layout[firsts[number - 1]][0]) for number in lost)
        listed = ", ".join(map(str, lost[:10])) + (", ..." if len(lost) > 10 else "")
        return (
            f"{n:,} sightings were not searched: of {len(firsts)} parts, those of a lost worker "
            f"({listed}) are being read by others. Search again in a moment"
        )

    def _laid_out(self, view: View) -> dict[int, tuple[Rows, Wanted]]:
        """Return the rows of each part and what it has to hold, worked out once for a table."""
        if self._table is not view.table:
            numbers, layout = view.table.numbers, {}
            last = int(numbers.max())
            order = np.argsort(numbers // SIZE, kind="stable")  # of a part in that of the table
            cuts = np.flatnonzero(np.diff(numbers[order] // SIZE)) + 1
            for rows in np.split(order, cuts):
                first = int(numbers[rows[0]] // SIZE * SIZE)
                stop = first + SIZE
                layout[first] = (
                    rows,
                    Wanted(first, stop, min(last, stop - 1), _digest(numbers[rows])),
                )
            self._table, self._layout = view.table, layout
        return self._layout

    def _shared_out(
        self, place: Place, layout: dict[int, tuple[Rows, Wanted]]
    ) -> tuple[dict[str, list[int]], set[int]]:
        """Return the parts to ask each worker for, and those that nobody can answer for yet."""
        workers = self._executor.workers()
        wished = assigned(tuple(sorted(layout)), tuple(workers))
        for worker, (first, task) in [*self._loads.items()]:
            if worker in workers and not task.done():
                continue
            del self._loads[worker]
            read = task.done() and not task.cancelled() and task.exception() is None
            if read and wished.get(first) == worker:
                if self._owners[first] in workers:
                    self._executor.submit(drop, place, first, on=self._owners[first])
                self._owners[first] = worker
        asked, missing = defaultdict(list), set()
        for first, worker in wished.items():
            owner = self._owners.setdefault(first, worker)
            if worker != owner and worker not in self._loads:
                one, nothing = [layout[first][1]], np.empty((0, place.width), np.float32)
                task = self._executor.submit(answer, place, one, nothing, 1, on=worker)
                self._loads[worker] = first, task
            if owner in workers:
                asked[owner].append(first)
            else:
                missing.add(first)
        return asked, missing

    def _hand_over(self, place: Place) -> None:
        """Have parts read where they belong, one after the other, also while nobody searches."""
        while self._moving:
            with self._lock:
                tasks = [task for _, task in self._loads.values()]
            wait(tasks, _POLL, "FIRST_COMPLETED")
            with self._lock:
                self._moving = False
                with suppress(ClusterError):  # said to whoever searches
                    self._shared_out(place, self._layout)
                    self._moving = bool(self._loads)

    def _answered(
        self, tasks: dict[Future[Any], tuple[str, list[int]]]
    ) -> Iterator[tuple[list[int], list[list[Nearest] | None] | None]]:
        """Yield parts with their answers as they come, None where the worker was lost."""
        while tasks:
            done, waiting = wait(tasks, timeout=_POLL, return_when="FIRST_COMPLETED")
            if not done:
                alive = self._executor.workers(fresh=True)
                for task in [one for one in waiting if tasks[one][0] not in alive]:
                    task.cancel()
            for task in [one for one in tasks if one.done()]:
                worker, firsts = tasks.pop(task)
                error = None if task.cancelled() else task.exception()
                if task.cancelled() or (error and self._executor.worker_died(error)):
                    yield firsts, None
                elif isinstance(error, StoreError):
                    raise StoreError(
                        f"worker {worker} cannot read the gallery: {error}. Workers need it at the "
                        "same address: in PostgreSQL, or in a folder of their machine"
                    ) from error
                else:
                    yield firsts, task.result()


@lru_cache(maxsize=8)
def assigned(firsts: tuple[int, ...], workers: tuple[str, ...]) -> dict[int, str]:
    """Share parts out evenly, so that few move when workers come and go."""
    most, load, found = -(-len(firsts) // max(1, len(workers))), Counter[str](), {}
    for first in firsts:
        ranked = sorted(workers, key=lambda worker: digest_of(f"{worker} {first}"))
        found[first] = next(worker for worker in ranked if load[worker] < most)
        load[found[first]] += 1
    return found


def _merged(found: list[Nearest], k: int) -> Nearest:
    """Return the k nearest of several parts; equal distances keep the order of the table."""
    if not found:
        return np.empty(0, np.intp), np.empty(0)
    rows, distances = (np.concatenate(values) for values in zip(*found, strict=True))
    order = np.lexsort((rows, distances))[:k]
    return rows[order], distances[order]
