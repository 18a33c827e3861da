"""The plain Euclidean distance as a learner that learns nothing: the baseline of every table."""

from __future__ import annotations

from resight.learners._base import Codes, Floats, MetricLearner


class Euclidean(MetricLearner):
    """Squared Euclidean distance of the features as they are; it ignores `cameras`."""

    state_version = 1
    learns = False

    def _fit(self, X: Floats, persons: Codes, cameras: Codes | None) -> None:
        self.n_components_ = X.shape[1]

    def _embed(self, X: Floats) -> Floats:
        return X
