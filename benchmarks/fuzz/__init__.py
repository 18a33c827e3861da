"""Bad input of every kind: command lines, forged files, calls of the Python API, web requests.

Each case runs in a fork of its own with limits on time and memory. It must be refused in plain
words: a traceback, an error of the wrong type, a hang or an answer as if nothing were wrong counts
as a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

ENDINGS = ("refused", "traceback", "hang", "accepted")


@dataclass(frozen=True)
class Case:
    """One thing to try.

    Attributes
    ----------
    kind, name : str
        Which list it belongs to, and what it does.
    work : callable
        Returns how it ended, one of `ENDINGS`, and what was said; or does not end.
    """

    kind: str
    name: str
    work: Callable[[], Verdict]


class Verdict(NamedTuple):
    """How a case ended, and what was said."""

    ending: str
    words: str = ""
