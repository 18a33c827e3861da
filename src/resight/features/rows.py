"""Rows of stored features, read some at a time: for tables that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.learners.normalizer import BlockNormalizer

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

GRAM_LIMIT = 4 * 10**9
"""Bytes of inner products up to which Gram space is used."""
BLOCK = 2048  # rows read at once: 220 MB of 27,000 float32 features


class FeatureRows:
    """Some rows of feature tables put side by side, those of `index` in this order, or all.

    To other processes go names of files where all parts (n, d_i) are mapped from files, whole or
    some rows that lie side by side; otherwise the rows of `index`, by value. `blocks` are the
    widths that are normalised separately, over all parts.
    """

    def __init__(
        self, parts: Sequence[NDArray[Any]], blocks: Sequence[int], index: Rows | None = None
    ) -> None:
        self.parts = tuple(parts)
        self.blocks = tuple(blocks)
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
        self.parts = tuple(
            _mapped(*part) if isinstance(part, tuple) else part for part in state["parts"]
        )
        self.blocks, self.index = state["blocks"], state["index"]


def _mapped(file: str, first: int, n_rows: int) -> NDArray[Any]:
    """Rows that lie side by side in a ``.npy`` file."""
    table: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    return table[first : first + n_rows]


def _place_of(part: NDArray[Any]) -> tuple[str, int, int] | None:
    """Return where `_mapped` finds the rows of an array that maps a file; None for others."""
    file = str(part.filename) if isinstance(part, np.memmap) else ""
    if not file.endswith(".npy"):
        return None
    whole = part
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    first, inside = divmod(part.ctypes.data - whole.ctypes.data, whole.strides[0])
    again = _mapped(file, first, len(part))
    same = (again.shape, again.strides, again.dtype) == (part.shape, part.strides, part.dtype)
    return (file, first, len(part)) if same and inside == 0 else None
