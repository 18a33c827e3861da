"""Some bad command lines as a shell would run them: names that are not UTF-8, ASCII terminals."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from benchmarks.fuzz import Case, Verdict
from benchmarks.fuzz.material import Material
from benchmarks.fuzz.running import SECONDS, judge_line

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


def lines(m: Material) -> list[tuple[list[Any], dict[str, str]]]:
    """Return words, some of them bytes, and what is added to the environment."""
    return [
        (["data", "info", m("strange")], {}),
        (["data", "info", b"camera-\xff\xfe"], {}),
        (["data", "info", "nobody \U0001f6b6"], ASCII),
        (["search", m("gallery"), m.image, "--camera", "door \U0001f6aa"], ASCII),
        (["gallery", "create", "out", "--model", m("model"), "--retention", "inf"], {}),
        (["search", m("gallery"), m("pipe.png")], {}),
        (["data", "check", m("zero.csv")], {}),
        (["evaluate", "--features", m("zero.npy")], {}),
        (["extract", m("people"), "--config", m("junk.bin")], {}),
        (["\U0001f6b6"], ASCII),
    ]


def cases(m: Material) -> list[Case]:
    """Return them; starting Python takes longer than refusing."""
    return [
        Case("command lines", f"as a process: {words}", lambda w=words, e=more: _run(w, e))  # type: ignore[misc]
        for words, more in lines(m)
    ]


def _run(words: list[Any], more: dict[str, str]) -> Verdict:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "resight", *words],
            env={**os.environ, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict("hang", f"no end within {SECONDS:g} s")
    return judge_line(
        done.returncode, *(s.decode(errors="replace") for s in (done.stdout, done.stderr))
    )
