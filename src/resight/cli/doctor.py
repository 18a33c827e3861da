"""``resight doctor``: check the installation; precompile."""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import typer

from resight._version import __version__
from resight.cli import EXTRAS
from resight.cli._common import Json, answer, flag, say

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "pillow", "opencv-contrib-python-headless")


def doctor(
    warm_up: bool = flag("--warm-up", "Compile everything now: descriptors, search, training"),
    json: Json = False,
) -> None:
    """Check the installation; exit code 1 if a required package is missing."""
    versions: dict[str, str | None] = dict.fromkeys(NEEDED)
    for name in NEEDED:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    able = getattr(os, "sched_getaffinity", None)
    folder = None
    if versions["numba"] is not None:
        from resight._compile import cache_folder

        folder = cache_folder()
    findings = {
        "schema": "resight.doctor/1",
        "resight": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(able(0)) if able else os.cpu_count() or 1,
        "packages": versions,
        "missing": [name for name, found in versions.items() if found is None],
        "extras": {
            name: all(one in sys.modules or find_spec(one) is not None for one in modules)
            for name, modules in EXTRAS.items()
        },
        "compiled_code": None if folder is None else str(folder),
    }
    if warm_up:
        findings["warm_up_seconds"] = _compile_all()
    answer(json, findings, _as_text(findings))
    if findings["missing"]:
        raise typer.Exit(1)


def _compile_all() -> dict[str, float]:
    """Compile everything; return the seconds that each descriptor took."""
    import numpy as np

    from resight.descriptors import DESCRIPTORS, descriptor
    from resight.gallery.index import ExactIndex
    from resight.learners._band import leading_by_band

    image = np.random.default_rng(0).integers(0, 256, (160, 60, 3), np.uint8)  # not a fitting size
    seconds = {}
    for name in DESCRIPTORS:
        say(f"compiling {name} ...")
        begin = time.perf_counter()
        descriptor(name).describe(image)
        seconds[name] = round(time.perf_counter() - begin, 3)
    several = np.zeros((2, 1), np.float32)  # queries that a server answers at once
    ExactIndex(several).search(several, 1)
    leading_by_band(np.eye(2, dtype=np.float32, order="F"), 1, 0.0)  # training on thousands
    return seconds


def _as_text(findings: dict[str, Any]) -> str:
    lines = [
        f"resight {findings['resight']} on Python {findings['python']}, {findings['platform']}",
        f"cores: {findings['cores']}",
    ]
    lines += [f"{name}: {found or 'MISSING'}" for name, found in findings["packages"].items()]
    lines += [
        f"extra {name}: " + ("installed" if there else f"missing: pip install 'resight[{name}]'")
        for name, there in findings["extras"].items()
    ]
    nowhere = "no writable cache folder: set NUMBA_CACHE_DIR to one"
    lines.append(f"compiled code: {findings['compiled_code'] or nowhere}")
    warm_up = findings.get("warm_up_seconds", {})
    lines += [f"warm-up {name}: {seconds:.3f} s" for name, seconds in warm_up.items()]
    if findings["missing"]:
        lines.append("a required package is missing: reinstall with pip install --upgrade resight")
    return "\n".join(lines)
