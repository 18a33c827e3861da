"""Feature store: descriptors of images on disk, computed once, found again by image contents."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import randbelow
from typing import Literal

import numpy as np

from resight._files import digest_of
from resight._progress import progress
from resight.datasets.sightings import Sightings, require_sightings
from resight.descriptors import descriptor as named
from resight.descriptors._base import Describes
from resight.descriptors.describing import Extraction, Failure
from resight.errors import InputError, StoreError
from resight.features._tables import FAILED, DescriptorTables, GrowingTable, read_chunk, write_chunk
from resight.features.describing import CHUNK, Crop, Task, describe_by, identify
from resight.features.rows import Features, Floats32
from resight.workers.executors import Executor, InProcess, Outcome, local

__all__ = ["Failure", "FeatureStore", "Features"]
_ROUNDS = 10  # how often another process may take chunks away under us before we give up
_SHOWN = 10  # failures spelt out in an error
_WAITING = 2  # chunks described but not yet written


class FeatureStore:
    """Folder of descriptors, safe to fill from several processes and to interrupt at any time.

    Parameters
    ----------
    folder : path
        Made on first use.

    Examples
    --------
    >>> store = FeatureStore("features")  # doctest: +SKIP
    >>> store.ensure(sightings, "gog+lomo-dagger").features.shape  # doctest: +SKIP
    (900, 54582)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{folder} is a file; a feature store is a folder, name another one")

    def ensure(
        self,
        sightings: Sightings,
        descriptor: str | Describes,
        mirror: bool = False,
        executor: Executor | None = None,
        on_error: Literal["raise", "collect"] = "raise",
    ) -> Features:
        """Return features of all sightings, computing only what the store does not have.

        Parameters
        ----------
        sightings : Sightings
            Which images; where `boxes` are given, these parts of them.
        descriptor : str or object
            A name such as ``"gog"``, several joined by ``+``, or an object with `name`,
            `n_features`, `fingerprint` and `describe(image)`.
        mirror : bool
            Average each image's descriptor with that of its mirror image (with names only).
        executor : Executor or None
            `resight.cluster(...)` or `local(jobs)`; None uses one process per core.
        on_error : {"raise", "collect"}
            What to do about images that cannot be read or described, once all the others are
            done: raise an error that lists them, or return NaN rows and `failures`.
        """
        if on_error not in ("raise", "collect"):
            raise InputError(f"on_error={on_error!r}; allowed: 'raise', 'collect'")
        if len(require_sightings(sightings)) == 0:
            raise InputError("no sightings given; give at least one")
        wanted = _descriptors(descriptor, mirror)
        crops, unreadable = identify(sightings)
        if unreadable and on_error == "raise":
            raise _cannot_use(unreadable)
        tables = [DescriptorTables(self.folder, one) for one in wanted]
        each = zip(tables, wanted, strict=True)
        jobs = [_Job(sightings, crops, *one, failures=set(unreadable)) for one in each]
        with local() if executor is None else nullcontext(executor) as workers:
            parts = [job.finish(workers, on_error) for job in jobs]
        return Features(
            parts=tuple(parts),
            descriptors=tuple(one.name for one in wanted),
            blocks=tuple(
                width for one in wanted for width in getattr(one, "blocks", (one.n_features,))
            ),
            failures=tuple(sorted(set().union(*(job.failures for job in jobs)))),
            changed=tuple(sorted(set().union(*(job.changed for job in jobs)))),
            computed=sum(job.computed for job in jobs),
            fingerprint=digest_of(*(part for job in jobs for part in (job.tables.id, *job.keys))),
            made_by=tuple(wanted),
        )

    def lookup(self, descriptor: Describes) -> Callable[[Sequence[str]], Floats32]:
        """Return a function that reads vectors which are stored now, by the keys of crops.

        It gives an array (n, n_features), with NaN where the store has no vector or not all of it.
        """
        parts = [DescriptorTables(self.folder, one).lookup() for one in _descriptors(descriptor)]
        return lambda keys: np.concatenate([rows(keys) for rows in parts], axis=1)


def _descriptors(given: str | Describes, mirror: bool = False) -> Sequence[Describes]:
    """Return descriptors one by one: those that are joined are stored apart."""
    if isinstance(given, str):
        return [named(name.strip(), mirror=mirror) for name in given.split("+")]
    if not hasattr(given, "n_features"):
        raise InputError(f"descriptor {given!r}: give a name such as 'gog', or a descriptor")
    if mirror:
        raise InputError("mirror=True goes with a descriptor's name; an object decides itself")
    return getattr(given, "parts", (given,))


@dataclass(eq=False)
class _Job:
    """One descriptor over all sightings."""

    sightings: Sightings
    crops: Sequence[Crop | None]
    tables: DescriptorTables
    descriptor: Describes
    failures: set[Failure]
    changed: set[str] = field(default_factory=set)
    computed: int = 0
    _reasons: dict[str, str] = field(default_factory=dict)  # by the keys of crops that failed

    @property
    def keys(self) -> list[str]:
        """Key of every row; FAILED where there is no vector."""
        failed = self._reasons
        return [FAILED if one is None or one.key in failed else one.key for one in self.crops]

    def finish(self, executor: Executor, on_error: str) -> Floats32:
        """Compute what is missing and return the table of all rows, or raise if some failed."""
        done = self.tables.table(self.keys)
        if done is None:
            done = self._made(executor, on_error)
        self.tables.sweep()  # a run killed right after its table was complete left chunks, too
        return done

    def _made(self, executor: Executor, on_error: str) -> Floats32:
        self.tables.create()
        readable = next((Path(crop.path) for crop in self.crops if crop is not None), None)
        executor.check_shared(self.tables.chunks, readable)
        paths = self.sightings.paths.tolist()
        known = self.tables.known_keys(self.sightings.name)
        for path, crop in zip(paths, self.crops, strict=True):
            if crop is not None and crop.key not in known.get(path, {crop.key}):
                self.changed.add(path)
        with GrowingTable(self.tables.folder, self.keys, self.tables.n_features) as table:
            self._fill(table, executor)
            self.failures.update(
                Failure(row, paths[row], self._reasons[crop.key])
                for row, crop in enumerate(self.crops)
                if crop is not None and crop.key in self._reasons
            )
            if self.failures and on_error == "raise":
                raise _cannot_use(sorted(self.failures))
            return self.tables.finish(table, self.keys, self.sightings.name, paths)

    def _fill(self, table: GrowingTable, executor: Executor) -> None:
        """Copy what the store has and let workers describe the rest.

        Chunks are cut from the whole selection before finished rows are taken out, so that
        processes that start at different times still agree on most of them.
        """
        every = list({crop.key: crop for crop in self.crops if crop is not None}.values())
        cuts = [every[start : start + CHUNK] for start in range(0, len(every), CHUNK)]
        for _ in range(_ROUNDS):
            self.tables.copy_into(table)
            lacking = table.missing.keys() - self._reasons.keys()
            chunks = [[crop for crop in cut if crop.key in lacking] for cut in cuts]
            todo = [chunk for chunk in chunks if chunk]
            if not todo:
                return
            self._work(todo, executor, table)
            self.computed = self.computed or sum(map(len, todo)) - len(self._reasons)
        raise StoreError(
            f"files of {self.tables.folder} keep disappearing while they are used. Let one process "
            "at a time clean that folder, then run the same command again"
        )

    def _work(self, chunks: list[list[Crop]], executor: Executor, table: GrowingTable) -> None:
        # Each process starts somewhere else and skips what others finished meanwhile, so several
        # of them share the work without talking to each other.
        start = randbelow(len(chunks))
        todo = chunks[start:] + chunks[:start]

        def prepare(chunk: list[Crop]) -> Task | None:
            target = self.tables.chunk_path([crop.key for crop in chunk])
            if target.exists():
                return None
            if not executor.send_files:
                return Task(chunk, None, None if isinstance(executor, InProcess) else target)
            contents = {}
            for path in {crop.path for crop in chunk}:
                with suppress(FileNotFoundError):  # reported with its chunk
                    contents[path] = Path(path).read_bytes()
            return Task(chunk, contents, None)

        title = f"extracting {self.descriptor.name}"
        # A thread of its own writes files: the disk works while the next images are described.
        with progress(title, sum(map(len, todo))) as advance, ThreadPoolExecutor(1) as disk:
            writing: deque[Future[None]] = deque()
            for outcome in describe_by(executor, self.descriptor, todo, prepare):
                writing.append(disk.submit(self._keep, outcome, table))
                if len(writing) > _WAITING:
                    writing.popleft().result()
                advance(len(outcome.item))
            for one in writing:
                one.result()

    def _keep(self, outcome: Outcome[list[Crop], Extraction], table: GrowingTable) -> None:
        """Write the rows of a chunk, unless its worker did, and copy them into the table."""
        keys, done = [crop.key for crop in outcome.item], outcome.value
        target = self.tables.chunk_path(keys)
        if outcome.error is not None:
            self._reasons |= dict.fromkeys(keys, f"chunk of {len(keys)} images {outcome.reason}")
        elif done is not None:
            self._reasons |= {keys[row]: reason for row, _, reason in done.failures}
            if len(done.features):
                write_chunk(target, [keys[row] for row in done.kept], done.features)
        with suppress(FileNotFoundError):  # all of them failed
            table.put(*read_chunk(target))


def _cannot_use(failures: Sequence[Failure]) -> InputError:
    """Make the error that lists images without features."""
    shown = "\n".join(f"  {failure.path}: {failure.reason}" for failure in failures[:_SHOWN])
    more = f"\n  and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
    return InputError(
        f"{len(failures)} images cannot be used. Repair or remove them, or continue without them "
        f"(on_error='collect'):\n{shown}{more}"
    )
