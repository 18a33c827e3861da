"""A small but real model: stripe colours, projected. Quick enough for hundreds of galleries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from resight import modelfiles
from resight.modelfiles import SavableMixin

modelfiles._CLASSES["StripeModel"] = __name__


class StripeModel(SavableMixin):
    """Mean colour of 16 stripes, multiplied by a seeded matrix (48, width)."""

    descriptor_fingerprint = "stripes-1"

    def __init__(self, seed: int = 0, width: int = 8) -> None:
        self.seed = seed
        self.matrix = np.random.default_rng(seed).normal(size=(48, width))

    @property
    def fingerprint(self) -> str:
        return f"stripe-model-{self.seed}-{self.matrix.shape[1]}"

    def describe(self, images: Sequence[np.ndarray]) -> np.ndarray:
        rows = []
        for image in images:
            stripes = np.array_split(image.astype(float) / 255, 16)
            rows.append(np.concatenate([stripe.mean(axis=(0, 1)) for stripe in stripes]))
        return np.array(rows, np.float32).reshape(-1, 48)

    def embed(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(features, float) @ self.matrix

    def probability(self, distances: np.ndarray) -> np.ndarray:
        return np.exp(-np.asarray(distances))
