"""Distances between people that a metric was not fitted on, from the cheapest place.

Many fits on parts of the same rows share their inner products where the learner needs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from resight.kernels import OF_PRODUCTS
from resight.learners._base import KernelMetricLearner, MetricLearner
from resight.models.model import Model
from resight.tuning.auto import AutoKXQDA
from resight.tuning.fold_metrics import Fold
from resight.tuning.gram import Floats, GramSpace, Rows, between_test_rows
from resight.tuning.settings import Setting

Array = NDArray[Any]
FoldDistances = Callable[[Rows, Rows], Floats]
"""Takes rows to learn from and rows held out; returns distances between the latter."""


def distances_of(model: Model, features: Array, persons: Array, cameras: Array) -> FoldDistances:
    """Fit copies of a model's learner, from inner products or from the features themselves."""
    learner, normalizer = model.learner, model.normalizer
    if isinstance(learner, AutoKXQDA) and normalizer is None:  # it normalises, as products do
        setting = Setting.from_dict(learner.setting_)
        parts = [features[:, a:b] for a, b in pairwise(learner.ends_)]
        spaces = GramSpace(parts, learner.blocks, "float64").descriptors()
        return lambda learn, held: Fold(
            spaces, learn, held, persons[learn], cameras[learn]
        ).distances(setting)
    if getattr(learner, "landmarks", None) is not None:  # of few rows the kernel itself is as quick
        learner = clone(learner).set_params(landmarks=None)
    kernel = isinstance(learner, KernelMetricLearner) and learner.kernel in OF_PRODUCTS
    if kernel or (learner.turned and features.shape[1] > len(features)):
        # Kernels forgive round-off; coordinates in the span of the rows would take it for
        # directions.
        blocks = None if normalizer is None else normalizer.blocks
        space = GramSpace([features], [blocks], "float32" if kernel else "float64")
        return gram_distances(learner, space, persons, cameras, normalizer is not None)
    return _model_distances(model, learner, features, persons, cameras)


def _model_distances(
    model: Model, learner: MetricLearner, features: Array, persons: Array, cameras: Array
) -> FoldDistances:
    def distances(learn: Rows, held: Rows) -> Floats:
        normalize = model.normalizer is not None and clone(model.normalizer)
        part = Model((), unfitted(learner), normalize=normalize)
        part.fit(features[learn], persons[learn], cameras[learn])
        return part.distances(features[held], features[held])

    return distances


def gram_distances(
    learner: MetricLearner, space: GramSpace, persons: Array, cameras: Array, normalize: bool
) -> FoldDistances:
    """Fit copies of a learner in Gram space; `persons` and `cameras` are those of its rows."""

    def distances(learn: Rows, held: Rows) -> Floats:
        products = space.products(learn, held, normalize=normalize, between_test=not learner.learns)
        between = between_test_rows(clone(learner), products, persons[learn], cameras[learn])
        all_held = np.arange(len(held))
        return between(all_held, all_held)

    return distances


def unfitted(learner: MetricLearner) -> MetricLearner:
    """Copy a learner without what it learned; a setting that it chose is kept."""
    made: MetricLearner = clone(learner)
    if isinstance(learner, AutoKXQDA):
        made.set_params(setting=learner.setting_)
    return made
