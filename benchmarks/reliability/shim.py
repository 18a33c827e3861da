"""The fault shim: built on demand, loaded in front of the C library, armed in a child."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_io.c")
KINDS = {"full disk": 1, "I/O error": 2, "killed": 3, "power cut": 4}  # as in the C file


def missing() -> str:
    """Say why faults cannot be injected here; empty if they can."""
    if sys.platform != "linux":
        return f"faults are injected by LD_PRELOAD, which {sys.platform} does not have"
    return "" if shutil.which("cc") else "faults need a C compiler (cc) to build the shim"


def build(folder: Path) -> Path:
    """Compile the shim into a folder."""
    shim = folder / "failing_io.so"
    subprocess.run(
        ["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", shim, SOURCE, "-ldl"], check=True
    )
    return shim


def environment(shim: Path) -> dict[str, str]:
    """Environment of a process whose calls pass through the shim."""
    return {**os.environ, "LD_PRELOAD": str(shim)}


class Faults:
    """The shim of this process, which must have been started with `environment`."""

    def __init__(self) -> None:
        self._shim = ctypes.CDLL(None)
        self._shim.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long]
        self._shim.fault_seen.restype = ctypes.c_long
        self._shim.fault_where.restype = ctypes.c_char_p

    def arm(self, folder: Path, kind: str, nth: int) -> None:
        """Let the n-th change below a folder fail; "" as kind only counts."""
        self._shim.fault_arm(str(folder.resolve()).encode(), KINDS.get(kind, 0), nth)

    def cut_power(self) -> None:
        """Take back what was not flushed to the disk since "power cut" was armed."""
        self._shim.fault_cut_power()

    def disarm(self) -> tuple[int, str]:
        """Let everything pass again; return how many changes were counted and which one was hit."""
        self._shim.fault_disarm()
        return self._shim.fault_seen(), self._shim.fault_where().decode()
