"""Fixtures shared by all tests: reference material beside the checkout, and a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# A run started in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["extraction_kit"]

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference outputs and research images, if this checkout has it beside it."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout: reference outputs are not available")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared: Path) -> Path:
    """Reference outputs of published codes."""
    return shared / "golden"


class DaskProcesses:
    """A Dask scheduler and workers in processes of their own, over TCP; `stop` ends them all."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def scheduler(self, *words: str) -> subprocess.Popen[bytes]:
        place = ("--host", "127.0.0.1", "--port", str(self.port))
        process = self._start("scheduler", *place, *words)
        self.wait_until(self._listens)
        return process

    def worker(self, nanny: str = "--no-nanny", **environment: str) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", nanny, **environment)

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a nanny and its worker
            process.wait()

    @staticmethod
    def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:g} s in vain")
            time.sleep(0.005)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
        process = subprocess.Popen(
            [*command, "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0", **environment},
        )
        self.processes.append(process)
        return process


@pytest.fixture
def dask() -> Iterator[DaskProcesses]:
    """Nothing runs yet: tests start what they need."""
    pytest.importorskip("distributed")
    started = DaskProcesses()
    yield started
    started.stop()
