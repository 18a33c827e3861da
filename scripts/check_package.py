"""Build wheel and sdist, and install both in empty environments, with and without extras.

`make package` runs it; it needs a package index (or `PIP_FIND_LINKS`) for the dependencies. In each
environment the version, the list of verbs and a fit on synthetic vectors must work, outside the
checkout; with the extras also the search page and a network's runtime must be importable.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "gallery,network"
TRY = """
import numpy as np, resight
persons, cameras = np.tile(np.arange(20), 2), np.repeat(["a", "b"], 20)
X = np.random.default_rng(0).normal(size=(20, 30))[persons]
X = X + 0.1 * np.random.default_rng(1).normal(size=(40, 30))
assert resight.KXQDA().fit(X, persons, cameras).score(X, persons, cameras) == 1.0
assert "site-packages" in resight.__file__, resight.__file__
"""
TRY_EXTRAS = "import resight.web.app, onnxruntime"


def main() -> None:
    """Build, then try each file with and without extras."""
    with tempfile.TemporaryDirectory() as place:
        built = Path(place) / "dist"
        for kind in ("wheel", "sdist"):
            run(built_by(Path(place)), "-m", "build", f"--{kind}", "-o", str(built), str(ROOT))
        wheel, sdist = next(built.glob("*.whl")), next(built.glob("*.tar.gz"))
        check_wheel(wheel)
        check_sdist(sdist)
        for file in (wheel, sdist):
            for extras in ("", f"[{EXTRAS}]"):
                start = time.perf_counter()
                try_install(Path(place) / f"env-{file.suffix}{extras}", f"{file}{extras}")
                seconds = time.perf_counter() - start
                print(f"{file.name}{extras}: installed and tried, {seconds:.0f} s", flush=True)


def built_by(place: Path) -> str:
    """Return the Python of an environment that has `build`, made on first use."""
    python = python_of(place / "builder")
    if not Path(python).exists():
        run(sys.executable, "-m", "venv", str(place / "builder"))
        run(python, "-m", "pip", "install", "--quiet", "build")
    return python


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel without its data files, or with what belongs to the checkout alone."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("resight/py.typed", "resight/web/templates/", "resight/datasets/splits/"):
        assert any(name.startswith(needed) for name in names), f"{wheel.name} lacks {needed}"
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def check_sdist(sdist: Path) -> None:
    """Refuse an sdist that holds anything but the files under version control, or lacks one."""
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:  # not a checkout: nothing to compare with
        return
    kept = set(listed.stdout.splitlines())
    odd = sorted(files - kept - {"PKG-INFO"})
    assert not odd, f"{sdist.name} holds what is not under version control: {odd[:5]}"
    lost = sorted(kept - files)
    assert not lost, f"{sdist.name} lacks {lost[:5]}"


def try_install(place: Path, requirement: str) -> None:
    """Install into a new environment and use it, from a folder that is not the checkout."""
    run(sys.executable, "-m", "venv", str(place))
    python = python_of(place)
    run(python, "-m", "pip", "install", "--quiet", requirement)
    run(python, "-m", "resight", "--version", cwd=place)
    run(python, "-m", "resight", "--help", cwd=place)
    run(python, "-W", "error", "-c", TRY, cwd=place)
    if requirement.endswith("]"):
        run(python, "-c", TRY_EXTRAS, cwd=place)


def python_of(environment: Path) -> str:
    """Return the interpreter of an environment."""
    return str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a command without this checkout on its path; stop with its output if it fails."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
