"""What an engine takes and returns: sightings, entries of the log, users and credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class Table:
    """What is known about each sighting, without its image and numbers: one row each."""

    ids: NDArray[np.str_]
    persons: NDArray[np.str_]
    cameras: NDArray[np.str_]
    times: NDArray[np.float64]
    sequences: NDArray[np.str_]
    sources: NDArray[np.str_]
    added: NDArray[np.float64]
    # As the database gave them: they rise with every addition and are never given again.
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Table:
        """Return some rows, in the order asked for."""
        return Table(*(column[rows] if len(column) else column for column in vars(self).values()))

    @staticmethod
    def empty() -> Table:
        """Return a table without rows."""
        text, number = np.empty(0, "U1"), np.empty(0)
        return Table(text, text, text, number, text, text, number)


@dataclass(frozen=True)
class Rows:
    """New sightings, complete: table, stored images, descriptors (n, d) and embeddings (n, r).

    Descriptors are stored as they are given, float32 or float16; None keeps none. Embeddings may
    follow later.
    """

    table: Table
    images: list[bytes]
    features: NDArray[np.floating[Any]] | None
    embeddings: Floats32 | None


class LogRow(NamedTuple):
    """One entry as it is stored; see `resight.gallery.log`."""

    number: int
    hash: str
    commitment: str
    salt: str | None
    act: str | None
    subject_salt: str | None
    subjects: str | None


class User(NamedTuple):
    """Somebody who may log in; the password is hashed."""

    name: str
    role: str
    password: str


class Credential(NamedTuple):
    """A session or a program's token; `ends` is None where it does not expire."""

    digest: str
    name: str
    role: str
    kind: str
    purpose: str
    begun: float
    ends: float | None
