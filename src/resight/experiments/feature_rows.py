"""Rows of stored features, read some at a time: for tables that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.learners.normalizer import BlockNormalizer

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]

BLOCK = 2048  # rows read at once: 220 MB of 27,000 float32 features


class FeatureRows:
    """Some rows of feature tables put side by side.

    Parameters
    ----------
    parts : sequence of arrays (n, d_i)
        Memory-mapped tables travel to other processes as file names, other arrays by value.
    blocks : sequence of int
        Widths that are normalised separately, over all parts.
    index : int array, optional
        The rows that count, in this order; by default all.
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
        parts = [_file_of(part) or np.asarray(part) for part in self.parts]
        return {"parts": parts, "blocks": self.blocks, "index": self.index}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.parts = tuple(
            np.load(part, mmap_mode="r", allow_pickle=False) if isinstance(part, str) else part
            for part in state["parts"]
        )
        self.blocks, self.index = state["blocks"], state["index"]


def _file_of(part: NDArray[Any]) -> str | None:
    """Return the ``.npy`` file that an array maps as a whole; None for other arrays."""
    file = str(part.filename) if isinstance(part, np.memmap) else ""
    if not file.endswith(".npy"):
        return None
    again = np.load(file, mmap_mode="r", allow_pickle=False)
    return file if again.shape == part.shape and again.dtype == part.dtype else None
