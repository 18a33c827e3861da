"""How inner loops are compiled: once per machine, kept in a cache that exists.

Kernels live in their own small files and are imported only when they are needed, so that numba
costs nothing before. They release the GIL, so threads describe images in parallel.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

from resight._version import __version__

Function = TypeVar("Function", bound=Callable[..., Any])

# Contraction and reassociation only: "nnan" and "ninf" would let the compiler drop our guards.
# Never in colour or quantisation code, where the last bit decides a bin.
FAST = {"contract", "reassoc", "nsz", "arcp"}
_lock = threading.Lock()


def kernel(function: Function | None = None, *, fast: bool = False) -> Any:
    """Compile a module-level function with numba on its first call, or load it from the cache.

    It must not close over arrays: tables are arguments, or the cache would not be found again.
    `fast` lets the compiler reorder sums (`FAST`): only where no bin depends on the last bit.
    """
    if function is None:
        return lambda inner: kernel(inner, fast=fast)
    folder = cache_folder()
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fast and FAST}
    settings: Any = numba.config
    with _lock:  # our cache folder must not leak into the numba functions of the user
        before = settings.CACHE_DIR
        if folder is not None:
            settings.CACHE_DIR = str(folder / __version__)
        try:
            return numba.njit(**options, cache=folder is not None)(function)
        finally:
            settings.CACHE_DIR = before


@cache
def cache_folder() -> Path | None:
    """Find a folder for compiled code that can be written, even where the package cannot.

    The one that ``NUMBA_CACHE_DIR`` names or, without it, the user's cache folder or else a
    private folder in the temporary one. None if there is nowhere to write: then every process
    compiles anew.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        candidates = [Path(named)]
    else:
        users = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
        base = Path(users or os.path.expanduser("~/.cache"))
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        temporary = Path(tempfile.gettempdir()) / f"resight-compiled-{user}"
        candidates = [base / "resight" / "compiled"] if base.is_absolute() else []
        candidates.append(temporary)
    return next((folder for folder in candidates if _usable(folder)), None)


def _usable(folder: Path) -> bool:
    """Whether the folder can be written by us and by no stranger: cached code gets executed."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            state = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return True
    return state.st_uid == os.getuid() and not state.st_mode & stat.S_IWOTH


class _Notice(event.Listener):
    """Tells once per process that kernels are being compiled, so that nobody waits puzzled."""

    told = False

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        if self.told or not function.__module__.startswith("resight."):
            return
        self.told = True
        sys.stderr.write(
            "resight: compiling for this processor; this happens once and "
            "takes a minute or two (`resight doctor --warm-up` does it in advance)\n"
        )
        sys.stderr.flush()

    def on_end(self, event: event.Event) -> None:
        """Nothing to tell: the result follows."""


event.register("numba:compile", _Notice())
