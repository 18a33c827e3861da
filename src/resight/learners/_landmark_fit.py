"""The steps of fitting k-XQDA through landmarks: how many, sums over features, the solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from resight.learners._base import Codes, Floats
from resight.learners._landmark_pencil import LandmarkPencil
from resight.learners._landmark_sums import ChunkSums, LandmarkStatistics, total
from resight.learners._landmarks import NystromMap
from resight.learners._pencil import direction_weights

EXACT_LIMIT = 20_000
"""Sightings up to which k-XQDA is exact unless landmarks are asked for."""
DEFAULT_LANDMARKS = 1024
"""Features beyond that size."""
CHUNK_ROWS = 2048  # seen at once: kernel rows of 67 MB for 1,024 features of 4,096 landmarks


def default_landmarks(n: int) -> int | None:
    """Tell how many landmarks to use for n sightings if nobody decided; None for an exact fit."""
    if n <= EXACT_LIMIT:
        return None
    warnings.warn(
        f"{n:,} training sightings are more than the {EXACT_LIMIT:,} up to which k-XQDA is "
        f"solved exactly, so landmarks={DEFAULT_LANDMARKS} is taken: another model, whose "
        "reg should be chosen for it. Give landmarks=a number to decide yourself, or "
        f"solver='dense' for an exact fit, which needs about {5 * 8 * n * n / 1e9:.0f} GB and "
        f"{(n / 12936) ** 3 * 7:.0f} minutes of a processor",
        UserWarning,
        stacklevel=5,
    )
    return DEFAULT_LANDMARKS


def add_up(
    features: Callable[[slice], Floats],
    persons: Codes,
    cameras: Codes | None,
    weights: Floats,
    at_once: int | None = None,
) -> ChunkSums:
    """Sum up the features of rows, some rows at a time; weights are those of `pair_weights`."""
    step = at_once or CHUNK_ROWS

    def chunk(start: int) -> ChunkSums:
        part = slice(start, start + step)
        views = None if cameras is None else cameras[part]
        return ChunkSums.of_rows(features(part), persons[part], views, weights[part])

    sums: ChunkSums = total(chunk(start) for start in range(0, len(persons), step))
    return sums


def solve(
    features: NystromMap,
    statistics: LandmarkStatistics,
    reg: float,
    reg_form: str,
    n_components: int | None,
) -> tuple[Floats, Floats, Floats]:
    """Return eigenvalues (b,), and coefficients (m, b) and offset (b,) of the embedding."""
    mu, V = LandmarkPencil(statistics, features.centre).solve(reg, reg_form)
    mu, V = mu[:n_components], V[:, :n_components]
    V = V * direction_weights(mu)
    return mu, features.lift @ V, (features.centre + statistics.mean()) @ V
