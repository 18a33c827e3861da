"""The embedding of a fitted mixture of metrics, for `AutoKXQDA` and for searches without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resight.errors import InputError
from resight.kernels import Floats, inner_products, row_squares
from resight.learners._blocks import block_slices, normalized
from resight.tuning.fused_kernel import FusedKernel, RowProducts
from resight.tuning.sketch import shortened


def embed(fitted: Any, X: Floats) -> Floats:
    """Embed rows X (n, n_features) by the learned attributes of an `AutoKXQDA`."""
    mean, blocks = fitted.normalizer_.mean_, fitted.normalizer_.blocks
    rows = normalized(X, mean, blocks)
    known: dict[int, RowProducts] = {}

    def products(i: int) -> RowProducts:
        if i not in known:
            columns = slice(fitted.ends_[i], fitted.ends_[i + 1])
            new, old = rows[:, columns], fitted.X_fit_[:, columns]
            known[i] = RowProducts(inner_products(new, old), row_squares(new), row_squares(old))
        return known[i]

    parts = []
    for kernel, coef, offset in zip(fitted.kernels_, fitted.coefs_, fitted.offsets_, strict=True):
        if "plain" in kernel:
            cosine = kernel["plain"] != "euclidean"
            given = normalized(X, np.zeros_like(mean), blocks) if cosine else rows
            parts.append(np.multiply(coef, _unlearned(fitted, given, kernel)))
        else:
            parts.append(FusedKernel.fitted(**kernel).rows(products) @ coef - offset)
    return np.concatenate(parts, axis=1)


def _unlearned(fitted: Any, rows: NDArray[Any], kernel: dict[str, Any]) -> NDArray[Any]:
    """Weigh descriptors; models from before vectors could be `whole` have them shortened."""
    parts = []
    for i, weight in enumerate(kernel["weights"]):
        columns = rows[:, fitted.ends_[i] : fitted.ends_[i + 1]] if weight else rows[:, :0]
        widths = descriptor_blocks(fitted.blocks, rows.shape[1])[i]
        slices = block_slices(widths, sum(widths)) if weight else []
        for block in (columns[:, one] for one in slices):
            short = block if kernel.get("whole") else shortened(block, len(widths))
            parts.append(np.sqrt(weight) * short)
    return np.concatenate(parts, axis=1)


def descriptor_blocks(
    blocks: Sequence[Sequence[int]] | None, n_features: int
) -> list[tuple[int, ...]]:
    """Return the widths of the blocks of each descriptor; they must add up to the features."""
    if blocks is None:
        return [(n_features,)]
    try:
        descriptors = [tuple(int(width) for width in widths) for widths in blocks]
    except TypeError:
        raise InputError(
            f"blocks={blocks!r}; give the widths of the blocks of each descriptor, such as "
            f"[({n_features},)] for one descriptor of one block"
        ) from None
    total = sum(map(sum, descriptors))
    if total != n_features:
        raise InputError(
            f"blocks add up to {total} features, but X has {n_features}; give the blocks of all "
            "descriptors, in the order of their columns"
        )
    return descriptors
