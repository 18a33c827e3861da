"""Extracting one descriptor of many sightings: what is missing, who computes it, what failed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import randbelow

from resight._progress import progress
from resight.datasets.sightings import Sightings
from resight.descriptors._base import Describes
from resight.descriptors.describing import Extraction, Failure
from resight.errors import InputError, StoreError
from resight.features._chunks import FAILED, GrowingTable, Rows, write_chunk
from resight.features._tables import DescriptorTables
from resight.features.describing import CHUNK, Crop, Task, describe_by
from resight.workers.executors import Executor, InProcess, Outcome

_ROUNDS = 10  # how often another process may take chunks away under us before we give up
_SHOWN = 10  # failures spelt out in an error
_WAITING = 2  # chunks described but not yet written


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
        self.tables = DescriptorTables(store, descriptor)
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
        done = self.tables.table(self.keys)
        if done is not None:
            self.tables.sweep()  # a run killed right after its table was complete left chunks
            return done
        self.tables.create()
        readable = next((Path(crop.path) for crop in self.crops if crop is not None), None)
        executor.check_shared(self.tables.chunks, readable)
        paths = self.sightings.paths.tolist()
        known = self.tables.known_keys(self.sightings.name)
        for path, crop in zip(paths, self.crops, strict=True):
            if crop is not None and crop.key not in known.get(path, {crop.key}):
                self.changed.add(path)
        with GrowingTable(self.tables.folder, self.keys, self.tables.n_features) as table:
            for _ in range(_ROUNDS):
                chunks = self._missing()
                self._work(chunks, executor, table)
                self.failures.update(
                    Failure(row, paths[row], self._reasons[crop.key])
                    for row, crop in enumerate(self.crops)
                    if crop is not None and crop.key in self._reasons
                )
                if self.failures and on_error == "raise":
                    raise cannot_use(sorted(self.failures))
                self.computed = self.computed or sum(map(len, chunks)) - len(self._reasons)
                rows = self.tables.finish(table, self.keys, self.sightings.name, paths)
                if rows is not None:
                    self.tables.sweep()
                    return rows
        raise StoreError(
            f"files of {self.tables.folder} keep disappearing while they are used. Let one process "
            "at a time clean that folder, then run the same command again"
        )

    def _missing(self) -> list[list[Crop]]:
        """Chunks of rows that are nowhere in the store.

        Chunks are cut from the whole selection before finished rows are taken out, so that
        processes that start at different times still agree on most of them.
        """
        unique = {crop.key: crop for crop in self.crops if crop is not None}
        done = self.tables.places().keys() | self._reasons
        every = list(unique.values())
        cuts = (every[start : start + CHUNK] for start in range(0, len(every), CHUNK))
        chunks = ([crop for crop in cut if crop.key not in done] for cut in cuts)
        return [chunk for chunk in chunks if chunk]

    def _work(self, chunks: list[list[Crop]], executor: Executor, table: GrowingTable) -> None:
        # Each process starts somewhere else and skips what others finished meanwhile, so several
        # of them share the work without talking to each other.
        start = randbelow(len(chunks)) if chunks else 0
        todo = chunks[start:] + chunks[:start]

        def prepare(chunk: list[Crop]) -> Task | None:
            target = self.tables.chunk_path([crop.key for crop in chunk])
            if target.exists():
                return None
            if executor.send_files:
                return Task(chunk, _contents({crop.path for crop in chunk}), None)
            return Task(chunk, None, None if isinstance(executor, InProcess) else target)

        title = f"extracting {self.descriptor.name}"
        # A thread of its own writes files: the disk works while the next images are described.
        with progress(title, sum(map(len, todo))) as advance, ThreadPoolExecutor(1) as disk:
            writing: deque[Future[None]] = deque()
            for outcome in describe_by(executor, self.descriptor, todo, prepare):
                self._note_reasons(outcome)
                # The table follows at once on its last chunk, so that one needs no file of its own.
                last = len(todo) == 1 and not self._reasons and not self.failures
                writing.append(disk.submit(self._keep, outcome, table, last))
                if len(writing) > _WAITING:
                    writing.popleft().result()
                advance(len(outcome.item))
            for one in writing:
                one.result()

    def _note_reasons(self, outcome: Outcome[list[Crop], Extraction]) -> None:
        crops, done = outcome.item, outcome.value
        if outcome.error is not None:
            text = f"chunk of {len(crops)} images {outcome.reason}"
            self._reasons.update((crop.key, text) for crop in crops)
        elif done is not None:
            self._reasons.update((crops[row].key, reason) for row, _, reason in done.failures)

    def _keep(
        self, outcome: Outcome[list[Crop], Extraction], table: GrowingTable, last: bool
    ) -> None:
        """Write the rows of a chunk, unless its worker did, and copy them into the table."""
        keys, done = [crop.key for crop in outcome.item], outcome.value
        if done is None or not len(done.features):
            self.tables.place_chunk(keys, table)
            return
        kept = [keys[row] for row in done.kept]
        if not last:
            write_chunk(self.tables.chunk_path(keys), kept, done.features)
        table.put(kept, done.features)


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
        f"{len(failures)} images cannot be used. Repair or remove them, or continue without them "
        f"(on_error='collect'):\n{shown}{more}"
    )
