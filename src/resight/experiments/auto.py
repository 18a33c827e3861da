"""AutoKXQDA: k-XQDA that chooses its own setting from the training people it is given."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from resight.experiments.candidates import AUTO_FOLDS, AUTO_REPEATS
from resight.experiments.gram import GramSpace
from resight.experiments.registry import learner_spec
from resight.experiments.search import Search, Setting
from resight.learners._base import Codes, Floats, MetricLearner, squared_euclidean
from resight.learners.normalizer import BlockNormalizer


class AutoKXQDA(MetricLearner):
    """k-XQDA that chooses kernel, regulariser, descriptor weights and fusion by itself.

    It uses `cameras`. The choice is made by cross-validation over the people it is given, so
    it needs at least twice as many people seen by two cameras as folds.

    Parameters
    ----------
    blocks : sequence of sequences of int, optional
        For each descriptor the widths of its blocks, as ``descriptor(name).blocks`` tells; by
        default all features are one descriptor of one block. Blocks are centred and
        L2-normalised inside, so give raw descriptors.
    n_folds, n_repeats : int
        Person-disjoint folds, and how often they are drawn anew.
    budget : float, optional
        Seconds for the choice.
    seed : int
        Draws the folds.

    Attributes
    ----------
    setting_ : dict
        What was chosen.
    candidates_ : list of dict
        Everything that was tried, with mean score (mean average precision on held-out people)
        and its standard error.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "blocks": [None, "array-like"],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "budget": [None, Interval(Real, 0, None, closed="neither")],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        blocks: Sequence[Sequence[int]] | None = None,
        n_folds: int = AUTO_FOLDS,
        n_repeats: int = AUTO_REPEATS,
        budget: float | None = None,
        seed: int = 0,
    ) -> None:
        self.blocks = blocks
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.budget = budget
        self.seed = seed

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        descriptors = [tuple(widths) for widths in self.blocks or [(X.shape[1],)]]
        flat = tuple(width for widths in descriptors for width in widths)
        self.normalizer_ = BlockNormalizer(flat).fit(X)
        views = np.arange(len(X)) if cameras is None else cameras
        starts = np.cumsum([0, *(sum(widths) for widths in descriptors)])
        parts = [X[:, a:b] for a, b in pairwise(starts)]
        space = GramSpace(parts, descriptors, "float64")
        search = Search(
            space,
            np.arange(len(X)),
            persons,
            views,
            n_folds=self.n_folds,
            n_repeats=self.n_repeats,
            budget=self.budget,
            seed=self.seed,
        )
        setting = search.run()
        self.setting_ = setting.as_dict()
        self.candidates_ = [
            {**t.setting.as_dict(), "map": t.mean, "standard_error": t.standard_error}
            for t in search.tried
        ]
        self._fit_parts(
            self.normalizer_.transform(X), persons, cameras, setting, space.groups, flat
        )

    def _fit_parts(
        self,
        rows: Floats,
        persons: Codes,
        cameras: Codes | None,
        setting: Setting,
        groups: list[int],
        flat: tuple[int, ...],
    ) -> None:
        self.members_, self.scales_ = [], []
        for name, params, weights in setting.parts():
            # sqrt: inner products of scaled blocks are weighted by the square of the scale
            scale = np.sqrt(np.repeat(np.repeat(weights, groups), flat))
            learner = learner_spec(name).make(**params).fit(rows * scale, persons, cameras)
            embedding = learner.transform(rows * scale)
            unit = float(squared_euclidean(embedding, embedding).mean())
            self.members_.append(learner)
            self.scales_.append([scale, unit])
        self.n_components_ = int(sum(member.n_components_ for member in self.members_))

    def _embed(self, X: Floats) -> Floats:
        rows = self.normalizer_.transform(X)
        parts = [
            member.transform(rows * scale) / np.sqrt(unit)
            for member, (scale, unit) in zip(self.members_, self.scales_, strict=True)
        ]
        return np.concatenate(parts, axis=1)
