"""Blocks of descriptors: their columns, and rows centred and normalised block by block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError


def normalized(
    rows: NDArray[Any], mean: NDArray[np.float64], blocks: Sequence[int] | None
) -> NDArray[Any]:
    """Subtract the mean and divide each block of a row by its L2 norm, unless that is zero."""
    out: NDArray[Any] = rows - mean.astype(rows.dtype)
    for block in block_slices(blocks, rows.shape[1]):
        norms = np.sqrt(np.einsum("ij,ij->i", out[:, block], out[:, block]))[:, None]
        np.divide(out[:, block], norms, out=out[:, block], where=norms > 0)
    return out


def block_slices(blocks: Sequence[int] | None, n_features: int) -> list[slice]:
    """Return the column ranges of blocks, checked against the number of features."""
    widths = [n_features] if blocks is None else [int(width) for width in blocks]
    if any(width < 1 for width in widths) or sum(widths) != n_features:
        raise InputError(
            f"blocks {tuple(widths)} add up to {sum(widths)}, but there are {n_features} features; "
            "give widths of at least 1 that add up to the number of features"
        )
    return [slice(*ends) for ends in pairwise(np.cumsum([0, *widths]).tolist())]
