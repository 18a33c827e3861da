"""Where work is done: this process, local processes or a Dask cluster, by one code path.

An executor hands one task to one worker and returns a future. Everything else is done by `run`, in
the same way for all of them: it keeps every worker busy, tries a failing task again, finds the task
that kills its worker, and goes on with the rest.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from resight.errors import ResightError
from resight.validation import MAX_JOBS, check_count

if TYPE_CHECKING:
    from resight.workers.dask_cluster import ClusterExecutor

_LIBRARIES = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")
_SINGLE_THREAD = {f"{name}_THREADS": "1" for name in _LIBRARIES} | {"OPENCV_FOR_THREADS_NUM": "1"}

RETRIES = 2  # a failing task is tried 1 + RETRIES times before it is given up
POLL_SECONDS = 1.0
_IN_FLIGHT = 2  # tasks handed out per worker: one runs, one waits, so that no worker idles

Item = TypeVar("Item")
Value = TypeVar("Value")


class Executor(AbstractContextManager["Executor"]):
    """What `run` needs to know about a place where work is done."""

    slots: int = 1  # how many tasks run at the same time; may change while running
    send_files: bool = False  # whether workers see other paths than we do: contents travel along

    @abstractmethod
    def submit(self, function: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """Start one call on some worker."""

    def worker_died(self, error: BaseException) -> bool:
        """Tell whether a task failed because its worker did."""
        return isinstance(error, BrokenExecutor)

    def recover(self) -> None:
        """Make the executor usable again after workers or the connection were lost."""

    def check_shared(self, folder: Path, file: Path | None) -> None:
        """Refuse to start when workers cannot write to `folder` or read `file`."""

    def bring(self, there: Callable[[], bool], pack: Callable[[], Callable[[], Any]]) -> None:
        """Let workers that lack a file (none here) call what `pack` returns, which carries it."""

    def watch(self) -> None:
        """Look after the workers while nothing finishes; called about once a second."""

    def close(self) -> None:
        """Stop the workers we started; tasks that still run are abandoned."""

    def __exit__(self, *error: object) -> None:
        self.close()


class InProcess(Executor):
    """Every task runs at once in this process: no start-up cost, one core."""

    def submit(self, function: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """Run the call and return its finished future."""
        future: Future[Value] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


class LocalProcesses(Executor):
    """So many worker processes on this machine (loky), each with single-threaded BLAS."""

    def __init__(self, jobs: int) -> None:
        self.slots = jobs
        self._pool: Any = None

    def submit(self, function: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """Start one call in a process of the pool, which is made on first use."""
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor

            prepared = {"initializer": _prepare_worker, "env": _SINGLE_THREAD}
            self._pool = ProcessPoolExecutor(self.slots, **prepared)
        return self._pool.submit(function, *arguments)

    def close(self) -> None:
        """End the processes without waiting for what they are doing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=True)

    recover = close  # the next task gets a new pool


def local(jobs: int | None = None) -> Executor:
    """Work on this machine with `jobs` processes (None: one per core we may use)."""
    if jobs is None:
        from joblib import cpu_count  # knows affinity masks and limits of containers

        jobs = min(int(cpu_count()), MAX_JOBS)
    check_count(jobs, "jobs", 1, MAX_JOBS)
    return InProcess() if jobs == 1 else LocalProcesses(jobs)


def cluster(
    address: str, *, send_files: bool = False, timeout: float = 10.0, patience: float = 60.0
) -> ClusterExecutor:
    """Work on the Dask cluster whose scheduler listens at `address`.

    Parameters
    ----------
    address : str
        Such as ``tcp://host:8786``.
    send_files : bool
        Send file contents to the workers and results back, for workers that do not share our
        file system. By default both travel by shared path.
    timeout : float
        Seconds to wait for the scheduler and its first worker.
    patience : float
        Seconds to wait for a scheduler, or for any worker, that was lost while working.

    Returns
    -------
    executor, also a context manager that closes the connection

    Examples
    --------
    >>> with resight.cluster("tcp://10.0.0.7:8786") as workers:  # doctest: +SKIP
    ...     FeatureStore("features").ensure(sightings, "gog", executor=workers)
    """
    from resight.workers.dask_cluster import ClusterExecutor

    return ClusterExecutor(address, send_files=send_files, timeout=timeout, patience=patience)


def _prepare_worker() -> None:
    # Ctrl-C reaches the whole process group; the parent ends us after keeping what is finished.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    # A killed parent cannot stop its workers, which would wait for tasks for ever.
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


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
    # Tasks are items, each with the number of its attempt.
    waiting = deque((item, 1) for item in items)
    running: dict[Future[Value], tuple[Item, int]] = {}
    # Tasks in flight when a worker died. One of them may be the killer, so each is tried alone:
    # whoever dies alone is guilty.
    suspects: deque[tuple[Item, int]] = deque()
    alone = broken = False
    try:
        while waiting or suspects or running:
            if not running:
                alone = False
                if broken:
                    executor.recover()
                    broken = False
            while not (broken or alone or (suspects and running)):
                if suspects:
                    task, alone = suspects.popleft(), True
                elif waiting and len(running) < _IN_FLIGHT * executor.slots:
                    task = waiting.popleft()
                else:
                    break
                arguments = prepare(task[0])
                if arguments is None:
                    yield Outcome(task[0])
                    continue
                try:
                    running[executor.submit(function, *arguments)] = task
                except BrokenExecutor:  # it broke after the last result and before this task
                    broken = True
                    waiting.appendleft(task)
            wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            # `wait` passes over futures that `watch` cancelled unless somebody else notices them.
            done = [future for future in running if future.done()]
            if running and not done:
                executor.watch()
            for future in done:
                item, attempt = running.pop(future)
                if future.cancelled():  # the connection was lost: nobody's fault, no attempt counts
                    broken = True
                    waiting.appendleft((item, attempt))
                    continue
                error = future.exception()
                if error is None:
                    yield Outcome(item, future.result(), attempts=attempt)
                    continue
                if isinstance(error, ResightError):
                    raise error
                died = executor.worker_died(error)
                broken = broken or died
                if died and not alone:
                    suspects.append((item, attempt))
                elif attempt <= retries:
                    (suspects if died else waiting).append((item, attempt + 1))
                else:
                    yield Outcome(item, error=error, attempts=attempt, worker_died=died)
    finally:
        for future in running:
            future.cancel()
