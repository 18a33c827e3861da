"""A Dask scheduler and workers in processes of their own, over TCP on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

# As docs/clusters.md advises: Dask looks at itself up to a hundred times a second.
_SURROUNDINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}


class DaskProcesses:
    """Context that starts processes on demand and ends them all."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler, always at the same address."""
        return self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self._port))

    def worker(self) -> subprocess.Popen[bytes]:
        """Start one worker with one thread."""
        return self._start("dask_worker", self.address, "--nthreads", "1", "--no-nanny")

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *words, "--no-dashboard"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_SURROUNDINGS},
        )
        self._processes.append(process)
        return process

    def __enter__(self) -> DaskProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
