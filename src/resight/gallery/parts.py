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
from collections.abc import Iterable, Iterator
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
from resight.gallery.index import ExactIndex, Floats, Nearest, Rows
from resight.gallery.view import View
from resight.workers.dask_cluster import ClusterError, ClusterExecutor

SIZE = 1 << 16  # numbers of a part: with 256 dimensions 64 MB
_POLL = 0.5  # seconds after which it is looked whether a worker that does not answer is still there


class ChangedError(StoreError):
    """The gallery was changed while it was searched; whoever meets it searches again."""


class Wanted(NamedTuple):
    """What one part has to hold for a question, and which of it may be found."""

    uri: str  # of the gallery, as workers open it
    generation: int  # of the embeddings
    width: int  # and their dimensions
    first: int  # number of the part
    stop: int  # the first number of the next part
    last: int  # greatest number that counts: sightings that came later do not
    digest: str  # of the numbers, in the order of the table
    allowed: bytes | None = None  # bits, in the order of the table


# ---- in a worker


@dataclass(frozen=True)
class _Part:
    """Embeddings of one part, in the order of the table."""

    generation: int
    numbers: NDArray[np.int64]
    index: ExactIndex
    digests: dict[int, str] = field(default_factory=dict)  # of the numbers up to one

    def holds(self, wanted: Wanted) -> bool:
        if wanted.last not in self.digests:
            self.digests[wanted.last] = digest(self.numbers[self.numbers <= wanted.last])
        return self.digests[wanted.last] == wanted.digest and self.generation == wanted.generation

    def now(self, engine: Engine, wanted: Wanted) -> _Part:
        """Read the part as it is now, of its embeddings those that are new."""
        numbers = engine.numbers(wanted.generation, wanted.first, wanted.stop)
        known, vectors = self.numbers, self.index.embeddings
        if self.generation != wanted.generation:
            known, vectors = known[:0], np.empty((0, wanted.width), np.float32)
        new = np.setdiff1d(numbers, known)
        if len(new):
            more, its = engine.vectors(wanted.generation, wanted.width, int(new[0]), wanted.stop)
            known, vectors = np.concatenate([known, more]), np.concatenate([vectors, its])
        order = np.argsort(known, kind="stable")
        rows = order[np.searchsorted(known, numbers, sorter=order)]
        return _Part(wanted.generation, numbers, ExactIndex(vectors[rows]))

    def search(self, wanted: Wanted, queries: Floats32, k: int) -> list[Nearest]:
        """Return the k nearest of each query: places among the wanted sightings, distances."""
        places = np.flatnonzero(self.numbers <= wanted.last)
        allowed = np.zeros(len(self.numbers), bool)
        allowed[places] = True
        if wanted.allowed is not None:
            bits = np.frombuffer(wanted.allowed, np.uint8)
            allowed[places] = np.unpackbits(bits, count=len(places))
        found = self.index.search(queries, k, None if allowed.all() else allowed)
        return [(np.searchsorted(places, rows), distances) for rows, distances in found]


_EMPTY = _Part(0, np.empty(0, np.int64), ExactIndex(np.empty((0, 1), np.float32)))
_ENGINES: dict[str, Engine] = {}
_PARTS: dict[tuple[str, int], _Part] = {}
_LOCK = threading.Lock()


def answer(wanted: list[Wanted], queries: Floats32 | None = None, k: int = 1) -> list[Any]:
    """Search some parts (in a worker), or only read them; None for one that cannot be had.

    Of each part come the places and distances of the k nearest, (n_queries, k) each; the distances
    are infinite where fewer were found.
    """
    answers: list[Any] = []
    for one in wanted:
        part = _ready(one)
        if part is None or queries is None:
            answers.append(None if part is None else ())
            continue
        shape = len(queries), min(k, len(part.numbers))
        places, distances = np.zeros(shape, np.intp), np.full(shape, np.inf)
        for row, (rows, near) in enumerate(part.search(one, queries, k)):
            places[row, : len(rows)], distances[row, : len(rows)] = rows, near
        answers.append((places, distances))
    return answers


def drop(wanted: Wanted) -> None:
    """Let go of a part that another worker holds now."""
    with _LOCK:
        _PARTS.pop((wanted.uri, wanted.first), None)


def _ready(wanted: Wanted) -> _Part | None:
    """Return a part that holds what is wanted, read again as far as it does not."""
    with _LOCK:
        part = _PARTS.get((wanted.uri, wanted.first), _EMPTY)
        if not part.holds(wanted):
            engine = _ENGINES[wanted.uri] = _ENGINES.get(wanted.uri) or connect(wanted.uri)
            with engine.transaction(reading=True):
                if wanted.generation not in engine.generations():
                    return None
                part = _PARTS[wanted.uri, wanted.first] = part.now(engine, wanted)
        return part if part.holds(wanted) else None


def digest(numbers: NDArray[np.int64]) -> str:
    """Return by what a part knows whether it holds the sightings of these numbers."""
    return digest_of(numbers.astype("<i8").tobytes())


# ---- where the question comes from


class Parts:
    """The parts of a gallery and the workers that hold them.

    Every part has one worker. While another one reads it, because the workers have changed, the
    first is asked on; if that one is lost, the part is missing meanwhile.
    """

    def __init__(self, engine: Engine, executor: ClusterExecutor) -> None:
        self._executor = executor
        self._uri = engine.uri if "://" in engine.uri else str(Path(engine.uri).resolve())
        self._lock = threading.Lock()
        self._table: object = None  # that the layout belongs to
        self._layout: dict[int, tuple[Rows, Wanted]] = {}  # by the first number of a part
        self._owners: dict[int, str] = {}
        self._moving = False  # whether a thread has parts read where they belong

    def nearest(
        self, view: View, queries: Floats32, k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[list[Nearest], set[int]]:
        """Return rows and distances of the k nearest of each query, and the parts that lack."""
        with self._lock:
            layout, wished = self._laid_out(view), self._wished()
            for first, worker in wished.items():
                self._owners.setdefault(first, worker)
            owners = {first: self._owners[first] for first in wished}
            if owners != wished and not self._moving:
                self._moving = True
                threading.Thread(target=self._hand_over, daemon=True).start()
        asked, missing = defaultdict[str, list[Wanted]](list), set()
        for first, (rows, wanted) in layout.items():
            if allowed is not None:
                if not allowed[rows].any():
                    continue  # nothing to be found: neither asked for nor missed
                wanted = wanted._replace(allowed=np.packbits(allowed[rows]).tobytes())
            if owners[first] in wished.values():
                asked[owners[first]].append(wanted)
            else:
                missing.add(first)
        tasks = {
            self._executor.submit(answer, its, queries, k, on=worker): (worker, its)
            for worker, its in asked.items()
        }
        of_parts = [np.empty((len(queries), 0), np.intp)]
        near = [np.empty((len(queries), 0))]
        for _, wanted, found in self._answered(tasks):
            if found is None:
                missing.add(wanted.first)
            else:
                of_parts.append(layout[wanted.first][0][found[0]])
                near.append(found[1])
        pairs = zip(np.hstack(of_parts), np.hstack(near), strict=True)
        return [_merged(rows, distances, k) for rows, distances in pairs], missing

    def told(self, missing: Iterable[int]) -> str:
        """Say what an answer lacks, empty if it lacks nothing."""
        parts = enumerate(self._layout.items(), 1)
        lost = {n: len(rows) for n, (first, (rows, _)) in parts if first in missing}
        if not lost:
            return ""
        listed = ", ".join(map(str, [*lost][:10])) + (", ..." if len(lost) > 10 else "")
        return (
            f"{sum(lost.values()):,} sightings were not searched: of "
            f"{len(self._layout)} parts, those of a lost worker ({listed}) are being read by "
            "others. Search again in a moment"
        )

    def _laid_out(self, view: View) -> dict[int, tuple[Rows, Wanted]]:
        """Return the rows of each part and what it has to hold, worked out once for a table."""
        if self._table is not view.table:
            numbers, model, layout = view.table.numbers, view.manifest.current, {}
            order = np.argsort(numbers // SIZE, kind="stable")  # of a part in that of the table
            for rows in np.split(order, np.flatnonzero(np.diff(numbers[order] // SIZE)) + 1):
                first = int(numbers[rows[0]] // SIZE * SIZE)
                limits = first, first + SIZE, min(int(numbers.max()), first + SIZE - 1)
                part = Wanted(self._uri, model.number, model.width, *limits, digest(numbers[rows]))
                layout[first] = rows, part
            self._table, self._layout = view.table, layout
        return self._layout

    def _wished(self) -> dict[int, str]:
        """Return the worker that each part belongs to."""
        return assigned(tuple(self._layout), tuple(self._executor.workers()))

    def _hand_over(self) -> None:
        """Have every worker read its parts, one after the other, also while nobody searches."""
        with suppress(StoreError, ClusterError):  # said to whoever searches
            while True:
                with self._lock:
                    layout, wished = self._layout, self._wished()
                    here = {first: self._owners[first] for first in wished}
                moves = {to: layout[first][1] for first, to in wished.items() if to != here[first]}
                if not moves:
                    break
                tasks = {
                    self._executor.submit(answer, [wanted], on=worker): (worker, [wanted])
                    for worker, wanted in moves.items()
                }
                for worker, wanted, read in self._answered(tasks):
                    if read is not None:
                        self._owners[wanted.first] = worker
                        if here[wanted.first] in wished.values():
                            self._executor.submit(drop, wanted, on=here[wanted.first])
        self._moving = False

    def _answered(
        self, tasks: dict[Future[Any], tuple[str, list[Wanted]]]
    ) -> Iterator[tuple[str, Wanted, Any]]:
        """Yield workers, parts and answers as they come, None where the worker was lost."""
        while tasks:
            done, waiting = wait(tasks, timeout=_POLL, return_when="FIRST_COMPLETED")
            if not done:
                alive = self._executor.workers(fresh=True)
                for task in [one for one in waiting if tasks[one][0] not in alive]:
                    task.cancel()
            for task in [one for one in tasks if one.done()]:
                worker, wanted = tasks.pop(task)
                error = None if task.cancelled() else task.exception()
                if task.cancelled() or (error and self._executor.worker_died(error)):
                    yield from ((worker, one, None) for one in wanted)
                    continue
                if isinstance(error, StoreError):
                    raise StoreError(
                        f"worker {worker} cannot read the gallery: {error}. Workers need it at the "
                        "same address: in PostgreSQL, or in a folder of their machine"
                    ) from error
                answers = task.result()
                if None in answers:
                    raise ChangedError(
                        f"gallery {self._uri} changes faster than the cluster reads it; search "
                        "again, or see `resight gallery check`"
                    )
                yield from ((worker, *pair) for pair in zip(wanted, answers, strict=True))


@lru_cache(maxsize=8)
def assigned(firsts: tuple[int, ...], workers: tuple[str, ...]) -> dict[int, str]:
    """Share parts out evenly, so that few move when workers come and go."""
    most, load, found = -(-len(firsts) // len(workers)), Counter[str](), {}
    for first in firsts:
        ranked = sorted(workers, key=lambda worker: digest_of(f"{worker} {first}"))
        found[first] = next(worker for worker in ranked if load[worker] < most)
        load[found[first]] += 1
    return found


def _merged(rows: Rows, distances: Floats, k: int) -> Nearest:
    """Return the k nearest of several parts; equal distances keep the order of the table."""
    order = np.lexsort((rows, distances))[:k]
    order = order[np.isfinite(distances[order])]
    return rows[order], distances[order]
