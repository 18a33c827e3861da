"""Features of sightings, as tables; and some of their rows, read when they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from resight.descriptors.describing import Failure

if TYPE_CHECKING:
    from resight.learners.normalizer import BlockNormalizer

Rows = NDArray[np.intp]
Floats32 = NDArray[np.float32]

GRAM_LIMIT = 4 * 10**9
"""Bytes of inner products up to which Gram space is used."""
BLOCK = 2048  # rows read at once: 220 MB of 27,000 float32 features


@dataclass(frozen=True)
class Features:
    """Descriptors of some sightings, one row each, in their order."""

    parts: tuple[Floats32, ...]  # (n, d_i) each, memory-mapped; a row that failed is all NaN
    descriptors: tuple[str, ...]  # their names, one a part
    blocks: tuple[int, ...]  # widths that `BlockNormalizer` treats separately, over all parts
    fingerprint: str  # of descriptors and image contents: where it is equal, features are
    failures: tuple[Failure, ...] = ()  # sightings without features, if these are collected
    changed: tuple[str, ...] = ()  # files with other contents than the store had under that name
    computed: int = 0  # vectors that were not in the store when the call began
    file: str | None = None  # where own vectors were read from
    made_by: tuple[Any, ...] = ()  # the descriptors themselves; none for own vectors

    @property
    def networks(self) -> list[bool]:
        """Which parts a network of the user's made."""
        from resight.descriptors import Network

        return [isinstance(one, Network) for one in self.made_by or self.parts]

    @cached_property
    def features(self) -> Floats32:
        """All parts side by side, (n, d): the memory map itself if there is one part only."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts, axis=1)

    @property
    def blocks_of_parts(self) -> list[tuple[int, ...]]:
        """Widths of the blocks of each part."""
        ends = np.cumsum(self.blocks)
        parts = np.searchsorted(np.cumsum([part.shape[1] for part in self.parts]), ends)
        widths = np.array(self.blocks)
        return [tuple(widths[parts == i].tolist()) for i in range(len(self.parts))]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Mask (n,) of the sightings that have features."""
        mask = np.ones(len(self.parts[0]), bool)
        mask[[failure.row for failure in self.failures]] = False
        return mask


class FeatureRows:
    """Some rows of feature tables put side by side, those of `index` in this order, or all.

    They are read some at a time, since tables may not fit into memory.

    To other processes go names of files where all parts (n, d_i) are mapped from files, whole or
    some rows that lie side by side; otherwise the rows of `index`, by value. `blocks` are the
    widths that are normalised separately, over all parts.
    """

    def __init__(
        self, parts: Sequence[NDArray[Any]], blocks: Sequence[int], index: Rows | None = None
    ) -> None:
        self.parts, self.blocks = tuple(parts), tuple(blocks)
        self.index = np.arange(len(parts[0])) if index is None else index

    def __len__(self) -> int:
        return len(self.index)

    @property
    def n_features(self) -> int:
        """Features of all parts together."""
        return sum(part.shape[1] for part in self.parts)

    @property
    def gram_bytes(self) -> int:
        """What the inner products of all rows would take, one matrix for each block."""
        return 8 * len(self) ** 2 * len(self.blocks)

    @property
    def size(self) -> str:
        """How large they are, in words."""
        return f"{len(self):,} sightings ({self.gram_bytes / 1e9:.0f} GB of inner products)"

    def select(self, rows: Rows) -> FeatureRows:
        """Return some of these rows, without reading them."""
        return FeatureRows(self.parts, self.blocks, self.index[rows])

    def read(self, rows: Rows | slice = slice(None)) -> NDArray[Any]:
        """Return rows as an array (n, n_features) of their own."""
        places = self.index[rows]
        if len(self.parts) == 1:
            return np.asarray(self.parts[0][places])
        return np.concatenate([part[places] for part in self.parts], axis=1)

    def in_blocks(self) -> Iterator[NDArray[Any]]:
        """Yield all rows, some at a time."""
        for start in range(0, len(self), BLOCK):
            yield self.read(slice(start, start + BLOCK))

    def normalizer(self) -> BlockNormalizer:
        """Return the `BlockNormalizer` of these rows, fitted without holding them all."""
        from resight.learners.normalizer import BlockNormalizer

        total = np.zeros(self.n_features)
        for block in self.in_blocks():
            total += block.sum(axis=0, dtype=np.float64)
        fitted = BlockNormalizer(self.blocks)
        fitted.n_features_in_ = self.n_features
        fitted.mean_ = total / len(self)
        return fitted

    def __getstate__(self) -> dict[str, Any]:
        places = [_place_of(part) for part in self.parts]
        if None not in places:
            return {"parts": places, "blocks": self.blocks, "index": self.index}
        parts = [part[self.index] for part in self.parts]
        return {"parts": parts, "blocks": self.blocks, "index": np.arange(len(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parts = tuple(np.memmap(*p) if isinstance(p, tuple) else p for p in state["parts"])
        self.blocks, self.index = state["blocks"], state["index"]


def _place_of(part: NDArray[Any]) -> tuple[Any, ...] | None:
    """Return how `np.memmap` maps the same rows of a file; None for an array that maps none."""
    if not isinstance(part, np.memmap) or not part.filename or not part.flags.c_contiguous:
        return None
    whole = part
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    offset = whole.offset + part.ctypes.data - whole.ctypes.data
    return str(part.filename), part.dtype, "r", offset, part.shape
