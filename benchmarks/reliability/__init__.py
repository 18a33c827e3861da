"""What galleries, feature stores and models survive: faults, kills, load and long use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Scale:
    """How much is tried.

    Attributes
    ----------
    points : int or None
        Changes of files at which each kind of fault is injected into each operation; None: all.
    kills, server_kills : int
        For each operation and engine.
    soak : float
        Seconds.
    searches : (int, int)
        After which the memory of a server is compared.
    """

    points: int | None = None
    kills: int = 30
    server_kills: int = 3
    soak: float = 300.0
    searches: tuple[int, int] = (200, 2000)


FULL = Scale()
REDUCED = Scale(points=1, kills=1, server_kills=1, soak=3.0, searches=(20, 60))


class Outcome(NamedTuple):
    """A section of the page, and what went wrong."""

    section: str
    failures: list[str]
