"""Extracting one descriptor of many sightings: what is missing, who computes it, what failed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from secrets import randbelow
from typing import Any, NamedTuple

from resight._files import digest_of, digest_of_file
from resight._progress import progress
from resight._version import __version__
from resight.datasets.sightings import Sightings
from resight.errors import InputError, StoreError
from resight.features._chunks import (
    FAILED,
    Crop,
    Describes,
    Report,
    Rows,
    compute,
    write_chunk,
)
from resight.features._growing_table import GrowingTable
from resight.features._store_files import Bank
from resight.workers.executors import Executor, InProcess, LocalProcesses, Outcome, run

CHUNK = 64  # images a task: starting it and flushing its file cost little beside describing them
_READERS = 8  # threads that read files for their digests: they wait for the disk, not for a core
_ROUNDS = 10  # how often another process may take chunks away under us before we give up
_SHOWN = 10  # failures spelt out in an error


class Failure(NamedTuple):
    """A sighting without features: which row, which file, why."""

    row: int
    path: str
    reason: str


class Job:
    """One descriptor over all sightings."""

    def __init__(
        self,
        store: Path,
        sightings: Sightings,
        crops: Sequence[Crop | None],
        unreadable: Sequence[Failure],
        descriptor: Describes,
    ) -> None:
        self.sightings = sightings
        self.crops = crops
        self.descriptor = descriptor
        self.blocks: tuple[int, ...] = getattr(descriptor, "blocks", (descriptor.n_features,))
        self.bank = Bank(store, descriptor)
        self.failures: set[Failure] = set(unreadable)
        self.changed: set[str] = set()
        self.computed = 0
        self._reasons: dict[str, str] = {}

    @property
    def keys(self) -> list[str]:
        """Key of every row; FAILED where there is no vector."""
        return [
            FAILED if crop is None or crop.key in self._reasons else crop.key for crop in self.crops
        ]

    def finish(self, executor: Executor, on_error: str) -> Rows:
        """Compute what is missing and return the table of all rows, or raise if some failed."""
        done = self.bank.table(self.keys)
        if done is not None:
            self.bank.sweep()  # a run killed right after its table was complete left chunks
            return done
        self.bank.create()
        readable = next((Path(crop.path) for crop in self.crops if crop is not None), None)
        executor.check_shared(self.bank.chunks, readable)
        self._notice_changes()
        with self.bank.growing(self.keys) as table:
            for _ in range(_ROUNDS):
                chunks = self._missing()
                self._work(chunks, executor, table)
                self._note_failures()
                if self.failures and on_error == "raise":
                    raise cannot_use(sorted(self.failures))
                self.computed = self.computed or sum(map(len, chunks)) - len(self._reasons)
                rows = self.bank.finish(
                    table, self.keys, self.sightings.name, self.sightings.paths.tolist()
                )
                if rows is not None:
                    self.bank.sweep()
                    return rows
        raise StoreError(
            f"files of {self.bank.folder} keep disappearing while they are used. Let one process "
            "at a time clean that folder, then run the same command again"
        )

    def _missing(self) -> list[list[Crop]]:
        """Chunks of rows that are nowhere in the store.

        Chunks are cut from the whole selection before finished rows are taken out, so that
        processes that start at different times still agree on most of them.
        """
        unique = {crop.key: crop for crop in self.crops if crop is not None}
        have = self.bank.places()
        every = list(unique.values())
        cuts = (every[start : start + CHUNK] for start in range(0, len(every), CHUNK))
        chunks = ([crop for crop in cut if self._wanted(crop, have)] for cut in cuts)
        return [chunk for chunk in chunks if chunk]

    def _wanted(self, crop: Crop, have: Any) -> bool:
        return crop.key not in have and crop.key not in self._reasons

    def _work(self, chunks: list[list[Crop]], executor: Executor, table: GrowingTable) -> None:
        # Each process starts somewhere else and skips what others finished meanwhile, so several
        # of them share the work without talking to each other.
        start = randbelow(len(chunks)) if chunks else 0
        todo = chunks[start:] + chunks[:start]
        if len(todo) == 1 and isinstance(executor, LocalProcesses):
            executor = InProcess()  # starting processes would take longer than the work

        def prepare(chunk: list[Crop]) -> tuple[Any, ...] | None:
            target = self.bank.chunk_path([crop.key for crop in chunk])
            if target.exists():
                return None
            contents = None
            if executor.send_files:
                contents = _contents({crop.path for crop in chunk})
            where = None if executor.send_files else target
            one = self.descriptor
            return where, chunk, one, one.fingerprint, __version__, contents

        title = f"extracting {self.descriptor.name}"
        with progress(title, sum(map(len, todo))) as advance:
            for outcome in run(executor, compute, todo, prepare):
                self._take(outcome, executor)
                self.bank.place_chunk([crop.key for crop in outcome.item], table)
                advance(len(outcome.item))

    def _take(self, outcome: Outcome[list[Crop], Report], executor: Executor) -> None:
        if outcome.error is not None:
            reason = str(outcome.error) or type(outcome.error).__name__
            if executor.worker_died(outcome.error):
                reason = "its worker died (killed, or out of memory)"
            text = f"chunk of {len(outcome.item)} images failed {outcome.attempts} times: {reason}"
            self._reasons.update((crop.key, text) for crop in outcome.item)
        if outcome.value is None:
            return
        report = outcome.value
        self._reasons.update(report.failures)
        if report.rows is not None and report.keys:
            target = self.bank.chunk_path([crop.key for crop in outcome.item])
            write_chunk(target, report.keys, report.rows)

    def _note_failures(self) -> None:
        paths = self.sightings.paths.tolist()
        for row, crop in enumerate(self.crops):
            if crop is not None and crop.key in self._reasons:
                self.failures.add(Failure(row, paths[row], self._reasons[crop.key]))

    def _notice_changes(self) -> None:
        known = self.bank.known_keys(self.sightings.name)
        for path, crop in zip(self.sightings.paths.tolist(), self.crops, strict=True):
            if crop is not None and crop.key not in known.get(path, {crop.key}):
                self.changed.add(path)


def identify(sightings: Sightings) -> tuple[list[Crop | None], list[Failure]]:
    """Read every file once and name each row by what is in it: contents, not name or date."""
    files = [str(path.absolute()) for path in sightings.pictures()]
    unique = list(dict.fromkeys(files))
    with ThreadPoolExecutor(_READERS) as readers:
        batches = [unique[start : start + CHUNK] for start in range(0, len(unique), CHUNK)]
        digests = dict(chain.from_iterable(readers.map(_digests, batches)))
    boxes = None if sightings.boxes is None else sightings.boxes.tolist()
    crops: list[Crop | None] = []
    failures = []
    for row, path in enumerate(files):
        digest = digests[path]
        if isinstance(digest, OSError):
            failures.append(Failure(row, str(sightings.paths[row]), digest.strerror or str(digest)))
            crops.append(None)
            continue
        box = None if boxes is None else tuple(boxes[row])
        crops.append(Crop(digest_of(digest, repr(box)), path, digest, box))
    return crops, failures


def _digests(paths: Sequence[str]) -> list[tuple[str, str | OSError]]:
    """Digest of each file; many in one task, since handing it to a thread costs more than one."""
    return [(path, _digest(path)) for path in paths]


def _digest(path: str) -> str | OSError:
    try:
        return digest_of_file(path)
    except OSError as error:
        return error


def _contents(paths: set[str]) -> dict[str, bytes]:
    """Read files; one that has disappeared is left out and reported with its chunk."""
    found = {}
    for path in paths:
        with suppress(FileNotFoundError):
            found[path] = Path(path).read_bytes()
    return found


def cannot_use(failures: Sequence[Failure]) -> InputError:
    """Make the error that lists images without features."""
    shown = "\n".join(f"  {failure.path}: {failure.reason}" for failure in failures[:_SHOWN])
    more = f"\n  and {len(failures) - _SHOWN} more" if len(failures) > _SHOWN else ""
    return InputError(
        f"{len(failures)} images cannot be used. Repair or remove them, or go on without them "
        f"(on_error='collect'):\n{shown}{more}"
    )
