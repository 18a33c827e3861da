"""Running many tasks on an executor: keep it busy, try again, find the task that kills workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from resight.errors import ResightError

if TYPE_CHECKING:
    from resight.workers.executors import Executor

RETRIES = 2  # a failing task is tried 1 + RETRIES times before it is given up
POLL_SECONDS = 1.0
_IN_FLIGHT = 2  # tasks handed out per worker: one runs, one waits, so that no worker idles

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Outcome(Generic[Item, Value]):
    """How one item ended: with a value, skipped (neither) or with the error of its last try."""

    item: Item
    value: Value | None = None
    error: BaseException | None = None
    attempts: int = 1
    worker_died: bool = False

    @property
    def reason(self) -> str:
        """How it failed, in words."""
        why = str(self.error) or type(self.error).__name__
        if self.worker_died:
            why = "its worker died (killed, or out of memory)"
        return f"failed {self.attempts} times: {why}"


def run(
    executor: Executor,
    function: Callable[..., Value],
    items: Sequence[Item],
    prepare: Callable[[Item], tuple[Any, ...] | None],
    retries: int = RETRIES,
) -> Iterator[Outcome[Item, Value]]:
    """Call `function` once for every item and yield outcomes as they come, in any order.

    `prepare` makes the arguments of an item's call just before it starts (so large arguments do not
    queue up), or returns None when the item no longer needs work. An item whose call raised, or
    whose worker died, is tried again; a ResightError stops all: no other task can do better (full
    disk, wrong version).
    """
    state = _Run(executor, function, prepare, retries, deque((item, 1) for item in items))
    try:
        while state.busy:
            yield from state.step()
    finally:
        for future in state.running:
            future.cancel()


@dataclass
class _Run(Generic[Item, Value]):
    executor: Executor
    function: Callable[..., Value]
    prepare: Callable[[Item], tuple[Any, ...] | None]
    retries: int
    waiting: deque[tuple[Item, int]]

    def __post_init__(self) -> None:
        self.running: dict[Future[Value], tuple[Item, int]] = {}
        # Tasks in flight when a worker died. One of them may be the killer, so each is tried
        # alone: whoever dies alone is guilty.
        self.suspects: deque[tuple[Item, int]] = deque()
        self.alone = False
        self.broken = False

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.suspects or self.running)

    def step(self) -> Iterator[Outcome[Item, Value]]:
        if not self.running:
            self.alone = False
            if self.broken:
                self.executor.recover()
                self.broken = False
        yield from self._fill()
        wait(self.running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        # `wait` passes over futures that `watch` cancelled unless somebody else notices them too.
        done = [future for future in self.running if future.done()]
        for future in done:
            yield from self._settle(future, *self.running.pop(future))
        if not done and self.running:
            self.executor.watch()

    def _fill(self) -> Iterator[Outcome[Item, Value]]:
        if self.broken or self.alone:
            return
        if self.suspects:
            if not self.running:
                self.alone = True
                yield from self._start(*self.suspects.popleft())
            return
        # A start that finds the executor broken puts its task back: then it is time to recover.
        while (
            self.waiting
            and not self.broken
            and len(self.running) < _IN_FLIGHT * self.executor.slots
        ):
            yield from self._start(*self.waiting.popleft())

    def _start(self, item: Item, attempt: int) -> Iterator[Outcome[Item, Value]]:
        arguments = self.prepare(item)
        if arguments is None:
            yield Outcome(item)
            return
        try:
            future = self.executor.submit(self.function, *arguments)
        except BrokenExecutor:  # it broke after the last result and before this task
            self.broken = True
            self.waiting.appendleft((item, attempt))
            return
        self.running[future] = (item, attempt)

    def _settle(
        self, future: Future[Value], item: Item, attempt: int
    ) -> Iterator[Outcome[Item, Value]]:
        if future.cancelled():  # the connection was lost: nobody's fault, so no attempt counts
            self.broken = True
            self.waiting.appendleft((item, attempt))
            return
        error = future.exception()
        if error is None:
            yield Outcome(item, future.result(), attempts=attempt)
        elif isinstance(error, ResightError):
            raise error
        elif self.executor.worker_died(error) and not self.alone:
            self.broken = True
            self.suspects.append((item, attempt))
        else:
            died = self.executor.worker_died(error)
            self.broken = self.broken or died
            if attempt > self.retries:
                yield Outcome(item, error=error, attempts=attempt, worker_died=died)
            else:
                (self.suspects if died else self.waiting).append((item, attempt + 1))
