"""What a gallery needs from a database: the small interface behind which engines stand.

An engine knows rows, documents and journals; it knows no images, models or labels. Its promises:

- `add` is all or nothing: before it returns nobody sees any of its rows, afterwards they stay;
- a sighting exists if and only if its row is in the sightings table;
- embeddings are derived data of one *generation* (one model); rows without an embedding may appear
  when a model is replaced while another process adds, and the gallery fills them in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from resight.gallery.filters import Filter

Floats32 = NDArray[np.float32]
Column = Literal["image", "feature"]


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

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Table:
        """Return some rows, in the order asked for."""
        return Table(*(getattr(self, name)[rows] for name in TABLE_COLUMNS))

    @staticmethod
    def empty() -> Table:
        """Return a table without rows."""
        text, number = np.empty(0, "U1"), np.empty(0)
        return Table(text, text, text, number, text, text, number)


TABLE_COLUMNS = ("ids", "persons", "cameras", "times", "sequences", "sources", "added")


@dataclass(frozen=True)
class Rows:
    """New sightings, complete: table, stored images, descriptors (n, d) and embeddings (n, r)."""

    table: Table
    images: list[bytes]
    features: Floats32
    embeddings: Floats32

    def __len__(self) -> int:
        return len(self.table)


class Engine(ABC):
    """A place that keeps a gallery."""

    uri: str

    @abstractmethod
    def exists(self) -> bool:
        """Whether a gallery is kept here."""

    @abstractmethod
    def create(self) -> None:
        """Make the empty tables."""

    @abstractmethod
    def version(self) -> tuple[object, object]:
        """Return tokens that differ after any change: of all but the labels, and of the labels."""

    # Documents: named bytes, replaced as a whole.
    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Read a document, None if there is none of that name."""

    @abstractmethod
    def put(self, documents: dict[str, bytes]) -> None:
        """Write documents, all or nothing."""

    @abstractmethod
    def names(self, prefix: str) -> list[str]:
        """List documents whose name begins with `prefix`, sorted."""

    @abstractmethod
    def drop(self, names: Sequence[str]) -> None:
        """Remove documents."""

    # Journals: texts with a key, in the order in which they were written.
    @abstractmethod
    def append(self, journal: str, key: str, text: str) -> None:
        """Write one entry; durable on return."""

    @abstractmethod
    def read(self, journal: str) -> list[tuple[str, str]]:
        """Return all entries as (key, text), oldest first."""

    @abstractmethod
    def strike(self, journal: str, keys: Sequence[str]) -> None:
        """Remove entries."""

    # Sightings.
    @abstractmethod
    def add(self, rows: Rows, generation: int) -> None:
        """Add sightings with embeddings of `generation`; ids that exist stay as they are."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Remove sightings and their embeddings of every generation."""

    @abstractmethod
    def table(self) -> Table:
        """Return all sightings, in the order in which they were added."""

    @abstractmethod
    def fetch(self, ids: Sequence[str], column: Column) -> dict[str, bytes]:
        """Read images or descriptors (float32, little endian) of some sightings."""

    # Embeddings.
    @abstractmethod
    def start_generation(self, generation: int, width: int) -> None:
        """Make an empty table of embeddings with `width` columns, replacing a leftover."""

    @abstractmethod
    def drop_generation(self, generation: int) -> None:
        """Remove the embeddings of a generation, if there are any."""

    @abstractmethod
    def generations(self) -> list[int]:
        """List the generations that have a table of embeddings."""

    @abstractmethod
    def embed(self, generation: int, table: Table, embeddings: Floats32) -> None:
        """Store embeddings of sightings."""

    @abstractmethod
    def embeddings(
        self, generation: int, width: int
    ) -> Iterator[tuple[NDArray[np.str_], Floats32]]:
        """Yield (ids, embeddings) in batches, in any order, possibly with leftover ids."""

    @abstractmethod
    def embedded(self, generation: int) -> set[str]:
        """Return the ids that have an embedding of a generation, without reading the vectors."""

    @abstractmethod
    def build_index(self, generation: int) -> None:
        """Build the engine's approximate index over the embeddings of a generation."""

    @abstractmethod
    def nearest(
        self, generation: int, query: Floats32, k: int, where: Filter, *, exact: bool
    ) -> tuple[list[str], Floats32]:
        """Return ids and embeddings of the k nearest, by the engine's own scan or its index.

        `where.persons` is not looked at: labels belong to the gallery.
        """

    # Care.
    @abstractmethod
    def purge(self) -> None:
        """Erase from the medium what was removed: old versions, dead rows, unused files."""

    @abstractmethod
    def traces(self, needles: Sequence[bytes]) -> list[str]:
        """Name the places where any of these byte strings is still kept."""

    @abstractmethod
    def verify(self, generations: Collection[int] | None = None) -> list[str]:
        """Read everything once; return one sentence for each thing that is damaged.

        With `generations`, embeddings of other models are left out: a rebuild that was killed
        leaves some behind, which nobody reads.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""
