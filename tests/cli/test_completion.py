"""Completion as shells ask for it: environment variables in, one candidate a line out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resight.cli import VERBS

COMMAND = [sys.executable, "-m", "resight"]


def complete(line: str) -> list[str]:
    words = line.split(" ")
    asked = {
        "_RESIGHT_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        COMMAND, env={**os.environ, **asked}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("resight ev", ["evaluate"]),
        ("resight ", list(VERBS)),
        ("resight evaluate --le", ["--learner"]),
        ("resight gallery re", ["remove", "rebuild", "restore", "retain", "require"]),
        ("resight gallery add --cl", ["--cluster"]),
        ("resight search --q", ["--quiet"]),
        ("resight fit --config run.toml --cal", ["--calibrate"]),
        ("resight nonsense --x", []),
    ],
)
def test_bash_completes_verbs_and_options(line: str, candidates: list[str]) -> None:
    assert complete(line) == candidates


def test_the_script_works_in_a_real_bash(tmp_path: Path) -> None:
    script = subprocess.run(
        [*COMMAND, "--show-completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    command = tmp_path / "resight"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m resight "$@"\n')
    command.chmod(0o755)
    ask = "COMP_WORDS=(resight ser); COMP_CWORD=1; _resight_completion resight; echo $COMPREPLY"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "serve\n", done.stderr


def test_installing_writes_below_home_and_says_where(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--install-completion", "bash"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    script = tmp_path / ".bash_completions" / "resight.sh"
    assert str(script) in done.stdout
    assert "_RESIGHT_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_unknown_shells_are_refused() -> None:
    done = subprocess.run([*COMMAND, "--show-completion", "bsh"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown shell 'bsh'; did you mean 'bash'?" in done.stderr
