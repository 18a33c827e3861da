"""Explaining the distances of one model, beside what is usual between different people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resight.errors import InputError
from resight.explanation.attribution import LEFT_OUT, metric_of, occlude, opaque
from resight.explanation.explanation import Explanation
from resight.explanation.parts import OCCLUSION, occlusion_partition, partition_of
from resight.images import read
from resight.kernels import inner_products

Floats = NDArray[np.float64]
Image = Path | str | NDArray[np.uint8]

N_PAIRS = 24  # of different people, to tell what is usual
_FEWER_PAIRS = 4  # where one pair takes as long as all of them do elsewhere
_FEWEST_PAIRS = 4
_SEED = 0
_SAME = 1e-5  # relative: float32 copies of one row
_ADDS_UP = 1e-4  # relative: parts that miss the distance by more are not shown as its parts


class Explainer:
    """Explains distances of a model; what is usual is found once and kept.

    Parameters
    ----------
    model : Model
        Fitted, with descriptors.
    references : array (n, n_features), optional
        Descriptors of sightings that tell what is usual between different people, such as some
        of a gallery. Those that the model learned from are left out, as far as it keeps its
        training sightings (kernel learners do): a metric holds people that it learned from much
        farther apart than new ones. Where nobody else is left, nothing is compared.
    persons : array (n,), optional
        Who is on them, so that pairs of one person are left out; empty text is unknown.

    Notes
    -----
    The features of the decomposition are those that the learner sees, after normalisation.
    """

    def __init__(
        self, model: Any, references: ArrayLike | None = None, persons: ArrayLike | None = None
    ) -> None:
        if not model.descriptors:
            raise InputError(
                "this model was trained on your own vectors, which have no known "
                "strips and channels, so it cannot explain images. Train a model on "
                "descriptors (resight fit)"
            )
        self.model = model
        self.partition = (
            occlusion_partition(model.descriptor)
            if model.networks
            else partition_of(model.descriptors)
        )
        self._references = None if references is None else np.asarray(references)
        self._persons = None if persons is None else np.asarray(persons)
        self._metric = metric_of(model)

    def explain(self, image_a: Image, image_b: Image) -> Explanation:
        """Explain the distance of two images or image files."""
        features = self.model.describe([image_a, image_b])
        return self.explain_features(features, lambda: [read(image_a), read(image_b)])

    def explain_features(
        self, features: ArrayLike, images: Callable[[], Sequence[NDArray[np.uint8]]] | None = None
    ) -> Explanation:
        """Explain the distance of two sightings, given as descriptors (2, n_features).

        A model with a network is explained by covering parts of the images, which `images` returns.
        """
        pair = np.asarray(features)
        if pair.shape != (2, len(self.partition.of_feature)):
            raise InputError(
                f"descriptors of shape {pair.shape}; explaining a pair needs two rows "
                f"of {len(self.partition.of_feature)} features"
            )
        distance = float(self.model.distances(pair[:1], pair[1:])[0, 0])
        if self.model.networks:
            if images is None:
                raise InputError("a model with a network is explained from images; give both")
            contributions = occlude(self.model, pair, images())
            return Explanation(distance, OCCLUSION, self.partition, contributions)
        contributions = self._divide(pair)
        adds_up = abs(float(contributions.sum()) - distance) <= _ADDS_UP * abs(distance)
        if self._metric.method != LEFT_OUT and not adds_up:
            self._metric = opaque(self.model)  # a learner that works otherwise than thought
            contributions = self._divide(pair)
        return Explanation(distance, self._metric.method, self.partition, contributions, self.usual)

    def _divide(self, pair: NDArray[Any]) -> Floats:
        rows = self._metric.normalize(pair)
        return self._metric.divide(rows[:1], rows[1:], self.partition.of_feature)[0]

    @cached_property
    def usual(self) -> Floats | None:
        """Contributions of parts (n_pairs, n_parts) between different people, if any are known."""
        if self._references is None:
            return None
        rows, persons = self._metric.normalize(self._references), self._persons
        learned = _known(rows, self._metric.training_rows)
        if persons is not None:  # nor other sightings of people that it learned from
            learned |= np.isin(persons, persons[learned & (persons != "")])
            persons = persons[~learned]
        n_pairs = _FEWER_PAIRS if self._metric.method == LEFT_OUT else N_PAIRS
        first, second = _pairs(int((~learned).sum()), persons, n_pairs)
        if len(first) < _FEWEST_PAIRS:
            return None
        rows = rows[~learned]
        return self._metric.divide(rows[first], rows[second], self.partition.of_feature)


def _known(rows: Floats, training: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Tell which rows are training rows, by their products with one random direction."""
    if training is None:
        return np.zeros(len(rows), bool)
    direction = np.random.default_rng(_SEED).normal(size=(1, rows.shape[1]))
    new, old = inner_products(rows, direction), inner_products(training, direction)
    nearest = abs(new - old.T).min(axis=1)  # (n_rows, n_train) -> (n_rows,)
    return np.asarray(nearest <= _SAME * abs(old).max())


def _pairs(
    n_rows: int, persons: NDArray[Any] | None, n_pairs: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw rows of different people; without persons any two (nearly all are different)."""
    if n_rows < 2:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    rng = np.random.default_rng(_SEED)
    first, second = rng.integers(0, n_rows, (2, 8 * n_pairs))
    different = first != second
    if persons is not None:
        unknown = (persons[first] == "") | (persons[second] == "")
        different &= unknown | (persons[first] != persons[second])
    return first[different][:n_pairs], second[different][:n_pairs]
