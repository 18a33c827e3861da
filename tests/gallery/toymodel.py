"""A small but real model: stripe colours, projected. Quick enough for hundreds of galleries."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

import numpy as np

from resight import saving
from resight.saving import SavableMixin

saving._CLASSES["StripeModel"] = __name__


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


saving._CLASSES["CountedModel"] = __name__


class CountedModel(StripeModel):
    """Takes its time and writes down what it describes and embeds, one letter for each row."""

    def __init__(self, log: str, seconds: float = 0.0, seed: int = 0, width: int = 8) -> None:
        super().__init__(seed, width)
        self.log = log
        self.seconds = seconds

    def describe(self, images: Sequence[np.ndarray]) -> np.ndarray:
        for image in images:
            time.sleep(self.seconds)
            if not image.any() and image.shape != (128, 64, 3):
                os.kill(os.getpid(), signal.SIGKILL)  # a black crop of odd size is deadly
        self._note("d" * len(images))
        return super().describe(images)

    def embed(self, features: np.ndarray) -> np.ndarray:
        time.sleep(self.seconds * len(features))
        self._note("e" * len(features))
        return super().embed(features)

    def _note(self, letters: str) -> None:
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, letters.encode())
        os.close(handle)

    def count(self, letter: str) -> int:
        try:
            with open(self.log) as stream:
                return stream.read().count(letter)
        except FileNotFoundError:
            return 0


saving._CLASSES["HalfStripeModel"] = __name__


class HalfStripeModel(StripeModel):
    """Another descriptor: the lower half of the stripes only."""

    descriptor_fingerprint = "half-stripes-1"

    def __init__(self, seed: int = 0, width: int = 8) -> None:
        super().__init__(seed, width)
        self.matrix = self.matrix[:24]

    @property
    def fingerprint(self) -> str:
        return f"half-{super().fingerprint}"

    def describe(self, images: Sequence[np.ndarray]) -> np.ndarray:
        return super().describe(images)[:, 24:]
