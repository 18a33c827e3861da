"""A Dask cluster as an executor: connecting, checking its workers, surviving a lost scheduler."""

from __future__ import annotations

import logging
import platform
import re
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

from resight._progress import log
from resight._version import __version__
from resight.errors import InputError, ResightError, require_package
from resight.workers.executors import Executor, Value

_SEND = (
    ", or send file contents with `resight extract --send-files`; other commands, without "
    "--cluster, then find the descriptors in the store"
)
_LONELY = (
    "the scheduler at {0} has had no worker for {1:g} s. Start some with `dask worker {0}`. "
    "Finished work is kept; run the command again to resume"
)
_PAUSED = (
    "all workers of the scheduler at {0} have been paused for {1:g} s: they are near their limit "
    "of memory. Start them with more (`dask worker --memory-limit`), or fewer on a machine. "
    "Finished work is kept; run the same command again to resume"
)


class ClusterError(ResightError):
    """The cluster cannot do the work: not reachable, no workers, or workers that differ."""


class ClusterExecutor(Executor):
    """Workers of a Dask cluster; see `resight.cluster` for the parameters."""

    def __init__(self, address: str, *, send_files: bool, timeout: float, patience: float) -> None:
        if not re.fullmatch(r"\w+://.+:\d+", address):
            raise InputError(
                f"{address!r} is not the address of a Dask scheduler; expected tcp://HOST:PORT "
                "(tls:// and ws:// work too), as `dask scheduler` prints it"
            )
        require_package("distributed", "cluster", "a Dask cluster")
        if not address.startswith(("tls://", "wss://", "tcp://127.", "tcp://localhost:")):
            log.warning(
                "%s is open: anyone who can reach it can run code on the cluster and on this "
                "machine. Use it in a closed network, or tls:// with certificates",
                address,
            )
        self.address = address
        self.send_files = send_files
        self.timeout = timeout
        self.patience = patience
        self._threads: tuple[float, dict[str, int]] = (0.0, {})  # of each worker; when asked
        self._lonely_since: float | None = None
        self._sent: WeakSet[Future[Any]] = WeakSet()
        self._brought: list[Callable[[], Any]] = []
        self._client: Any = self._connect(timeout)
        try:
            self._look_at_workers(timeout)
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:  # type: ignore[override]  # asked anew
        """Threads of all workers now."""
        return max(1, sum(self._asked().values()))

    def workers(self, *, fresh: bool = False) -> list[str]:
        """Return the addresses of all workers, sorted."""
        found = sorted(self._asked(fresh or not self._threads[1]))
        if not found:
            raise ClusterError(
                f"the scheduler at {self.address} does not answer or has no worker; start some "
                f"with `dask worker {self.address}`"
            )
        return found

    def _asked(self, fresh: bool = False) -> dict[str, int]:
        """Return the threads of each worker, asked at most once a second unless `fresh`."""
        if fresh or time.monotonic() - self._threads[0] > 1.0:
            self._threads = time.monotonic(), _or_nothing(self._client.nthreads)
        return self._threads[1]

    def submit(
        self, function: Callable[..., Value], *arguments: Any, on: str | None = None
    ) -> Future[Value]:
        """Send one call to the scheduler, for any worker or for one address."""
        where = {} if on is None else {"workers": [on]}
        try:
            sent = self._client.submit(function, *arguments, pure=False, **where)
        except Exception as error:
            if self._client.status == "running":
                raise
            raise BrokenExecutor(f"lost the scheduler at {self.address}") from error
        future: Future[Value] = Future()
        future.add_done_callback(lambda f: f.cancelled() and not sent.cancelled() and sent.cancel())
        self._client.loop.add_callback(_pass_on, sent, future)
        self._sent.add(future)
        return future

    def worker_died(self, error: BaseException) -> bool:
        """Dask gives a task up after it lost several workers in a row."""
        from distributed import KilledWorker

        return isinstance(error, (KilledWorker, BrokenExecutor))

    def recover(self) -> None:
        """Connect anew if the scheduler went away, and look at the workers it has now."""
        if self._client.status != "running":
            self.close()
            self._client = self._connect(self.patience)
        self._look_at_workers(self.patience)
        for unpack in self._brought:  # a new scheduler knows nothing of them
            self._unpack(unpack)

    def watch(self) -> None:
        """Take back tasks of a restarted scheduler; give up when no worker takes any for long.

        Dask's client connects to a scheduler that was restarted by itself, but the new one knows
        nothing of the old one's tasks: without this they would be waited for forever.
        """
        found = _or_nothing(self._client.scheduler_info) if self._client.status == "running" else {}
        if found.get("id", self._scheduler) != self._scheduler:
            for future in list(self._sent):
                future.cancel()
            return
        workers = found.get("workers", {}).values()
        if not found or any(worker["status"] == "running" for worker in workers):
            self._lonely_since = None
            return
        now = time.monotonic()
        self._lonely_since = self._lonely_since or now
        if now - self._lonely_since > self.patience:
            message = _PAUSED if workers else _LONELY
            raise ClusterError(message.format(self.address, self.patience))

    def check_shared(self, folder: Path, file: Path | None) -> None:
        """Refuse to start when some worker cannot write to `folder` or read `file`."""
        if self.send_files:
            return
        shared, image = str(folder), "" if file is None else str(file)

        def unseen() -> str:  # local, so that it travels by value
            import os

            if not (os.path.isdir(shared) and os.access(shared, os.W_OK)):
                return f"write to {shared}"
            return f"read {image}" if image and not os.access(image, os.R_OK) else ""

        for worker, what in self._ask_workers(unseen).items():
            if what:
                raise ClusterError(
                    f"worker {worker} cannot {what}. Mount that folder there under the same path"
                    + (_SEND if file is not None else "")  # with a file, to describe images
                )

    def bring(self, there: Callable[[], bool], pack: Callable[[], Callable[[], Any]]) -> None:
        """Send a file to all workers, and to those that come later, unless all of them see it."""
        if all(self._ask_workers(there).values()):
            return
        self._brought.append(pack())
        self._unpack(self._brought[-1])

    def _unpack(self, unpack: Callable[[], Any]) -> None:
        from distributed import WorkerPlugin

        class Unpacking(WorkerPlugin):  # type: ignore[misc]  # local, so that it travels by value
            def setup(self, worker: Any) -> None:
                unpack()

        self._client.register_plugin(Unpacking(), name=f"resight-{id(unpack)}")

    def close(self) -> None:
        """Close our connection; the cluster itself is not ours and stays."""
        with suppress(Exception):  # a connection that is gone cannot be closed better
            self._client.close(timeout=2)

    def _connect(self, seconds: float) -> Any:
        from distributed import Client

        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we report it ourselves
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.5, min(self.timeout, deadline - time.monotonic()))
            try:
                return Client(self.address, timeout=left, set_as_default=False, name="resight")
            except (OSError, TimeoutError, CancelledError, ValueError) as error:
                if time.monotonic() >= deadline:
                    raise ClusterError(
                        f"no Dask scheduler answers at {self.address} within {seconds:g} s. Check "
                        "the address, or start one with `dask scheduler` and workers with `dask "
                        "worker ADDRESS`. Finished work is kept; run the command again to resume"
                    ) from error
                time.sleep(0.2)

    def _look_at_workers(self, seconds: float) -> None:
        """Wait for the first, and refuse those that run another resight."""
        self._scheduler = _or_nothing(self._client.scheduler_info).get("id")
        deadline = time.monotonic() + seconds
        while not _or_nothing(self._client.nthreads):
            if time.monotonic() > deadline:
                raise ClusterError(_LONELY.format(self.address, seconds))
            time.sleep(0.1)

        def version() -> str | None:  # local, so that it travels by value
            try:
                from resight._version import __version__ as installed
            except ImportError:
                return None
            return installed

        for worker, theirs in self._ask_workers(version).items():
            refuse_other_version(theirs, worker)

    def _ask_workers(self, question: Callable[[], Value]) -> dict[str, Value]:
        """Answers of all workers; one that dies just now has none."""
        return dict(self._client.run(question, on_error="ignore"))


def _or_nothing(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return dict(ask())
    except Exception:  # a connection that breaks right now is noticed by the tasks' futures
        return {}


async def _pass_on(sent: Any, future: Future[Any]) -> None:
    """Wait for a future of Dask and end ours in the same way.

    Dask's own bridge (`Client.get_executor`) leaves a future pending for ever when the worker dies
    between finishing a task and handing its result over, and the task cannot be done again.
    """
    value = error = None
    try:
        value = await sent.client.gather(sent, asynchronous=True)
    except Exception as failure:
        error = failure
    if sent.cancelled():
        future.cancel()
    if future.set_running_or_notify_cancel():
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def refuse_other_version(theirs: str | None, worker: str, ours: str = __version__) -> None:
    """Raise when a worker runs another resight, or none: its features could differ from ours."""
    if theirs == ours:
        return
    found = f"resight {theirs}" if theirs else "no resight"
    raise ClusterError(
        f"worker {worker} has {found}, this is resight {ours}. Install resight {ours} on every "
        "worker and restart it"
    )


def refuse_other_code(version: str, computed: str, wanted: str) -> None:
    """Raise, in a worker, when it runs another resight or computes other descriptors than asked."""
    refuse_other_version(__version__, platform.node(), version)
    if computed != wanted:
        raise ClusterError(
            f"worker {platform.node()} computes descriptors {computed}, asked for are {wanted}. "
            "Install the same resight everywhere"
        )
